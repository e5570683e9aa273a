#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/groups/roster.h"
#include "wire/request.h"

namespace muster::core {

/// What all ranks of a round must agree on.
struct RoundCall {
  wire::Collective collective = wire::Collective::barrier;
  std::uint32_t root = 0;
  std::uint32_t codec = 0;
  friend bool operator==(const RoundCall&, const RoundCall&) = default;

  /// Whether the root's value alone decides it.
  bool from_one() const {
    return collective == wire::Collective::broadcast || collective == wire::Collective::scatter;
  }
  /// Whether its outcome is the values of all ranks.
  bool gathers() const {
    return collective == wire::Collective::all_gather || collective == wire::Collective::gather;
  }
  bool brings_value(std::uint32_t rank) const { return from_one() ? rank == root : gathers(); }
};

RoundCall call_of(const wire::CollectiveCall& request);

/// "barrier", "broadcast root=2 codec=1".
std::string text_of(const RoundCall& call);

/// What is wrong with the call itself: it does not count then.
std::optional<Error> refusal(const RequestContext& context, const Member& member,
                             const wire::CollectiveCall& request, const wire::ServerLimits& limits);

}  // namespace muster::core
