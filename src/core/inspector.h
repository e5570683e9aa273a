#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/name_spaces.h"
#include "core/session/snapshot.h"
#include "core/sessions.h"
#include "wire/operation_table.h"

namespace muster::core {

/// What operators are told of the server, and what is counted for them alone.
class Inspector {
 public:
  Inspector(EngineServices& services, NameSpaces& name_spaces, const Sessions& sessions)
      : services_(services), name_spaces_(name_spaces), sessions_(sessions) {}
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // Requests.
  void status(const RequestContext& context);  // inspector_status.cpp
  void who_am_i(const RequestContext& context);
  void sessions(const RequestContext& context, const wire::Sessions& request);
  void waiters(const RequestContext& context, const wire::Waiters& request);
  void name_spaces(const RequestContext& context, const wire::NameSpaces& request);

  /// One more request of the operation with this index in the table.
  void count_request(std::size_t index) { ++operation_counts_[index]; }
  RimCounts& rim_counts() { return rim_counts_; }

  Counts counts() const;
  /// With what the rim has counted.
  Snapshot snapshot() const;

 private:
  EngineServices& services_;
  NameSpaces& name_spaces_;
  const Sessions& sessions_;
  RimCounts rim_counts_;
  std::array<std::uint64_t, wire::operations_count> operation_counts_{};
};

}  // namespace muster::core
