#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failures/failing_calls.h"
#include "muster/error.h"
#include "muster/types.h"

namespace muster::test {

/// What two ranks were told while they used everything a store and a group offer.
struct Story {
  std::vector<Error> errors;            ///< of calls that failed
  std::vector<std::string> wrongs;      ///< promises that were broken
  std::vector<std::string> unheard;     ///< calls whose handler did not run
  std::vector<std::string> speechless;  ///< calls whose error has no text
  std::size_t call_count = 0;
  std::size_t success_count = 0;
};

/// Two ranks, each a thread with a store of its own, at the server at `address`; `timeout` is that
/// of each call.
Story play(const std::string& address, Duration timeout);

/// So long a call may take with the plan; many small steps are slow on a busy machine.
Duration timeout_of(FailurePlan plan);

/// Whether calls failed, all of them only because they were late or the other rank was, and
/// nothing else was wrong.
bool was_only_late(const Story& story);

/// Whether a newcomer can write and read at `address`.
///
/// incarnation  of the server that is to be there; another one may have the port of one that has
///              ended. None: it is not known
bool serves(const std::string& address, std::optional<std::uint64_t> incarnation = std::nullopt);

}  // namespace muster::test
