#pragma once

#include <string>
#include <vector>

#include "muster/error.h"

namespace muster::test {

/// What two ranks were told while they used everything a store and a group offer.
struct Story {
  std::vector<Error> errors;        ///< of calls that failed
  std::vector<std::string> wrongs;  ///< promises that were broken
  std::size_t call_count = 0;
};

/// Two ranks, each a thread with a store of its own, at the server at `address`.
Story play(const std::string& address);

/// Whether a newcomer can write and read at `address`.
bool serves(const std::string& address);

}  // namespace muster::test
