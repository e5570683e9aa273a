#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/chain.h"
#include "core/session/session.h"

// How parked get, take and wait requests stand at the keys that they wait for.

namespace muster::core {

struct Entry;
struct KeyWait;
struct TableState;

/// One wait's place at one key.
struct WaitLink {
  KeyWait* wait = nullptr;
  Entry* entry = nullptr;
  ChainLink<WaitLink> at_key{*this};
};

/// All who wait at one key.
struct Waiting {
  Chain<WaitLink> readers;  ///< get, wait: a value that comes serves all
  Chain<WaitLink> takers;   ///< take: it serves the first
};

/// The error of a get, take or wait whose keys are not there; `timeout` is that of the call.
Error absent_error(ErrorCode code, const std::vector<std::string_view>& missing, Duration timeout);

/// A parked get, take or wait. Life: stands at all its keys, counting those that are missing ->
/// the last of them comes (checked: has another expired meanwhile?) -> answered; or the deadline,
/// an abandon, or the session's end destroys it first. Its destructor leaves all lists.
struct KeyWait final : Wait {
  /// Takes over a charge of `charged_bytes(key_count)` that was made already.
  KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count);
  ~KeyWait() override;

  /// Stands at one more key, behind those who came before.
  void stand_at(Entry& entry);

  static std::uint64_t charged_bytes(std::size_t key_count) {
    return sizeof(KeyWait) + (key_count == 1 ? 0 : key_count * sizeof(WaitLink));
  }

  void timed_out() override;
  std::string target() const override;

  TableState& table;
  std::span<WaitLink> links;       ///< one per key, in the request's order
  std::size_t standing_count = 0;  ///< how many of the links are in a list
  std::size_t missing_count = 0;   ///< how many of its keys are absent
  std::uint64_t number = 0;        ///< in the order in which they came
  bool queued = false;             ///< about to be served, see TableState::serve

 private:
  WaitLink only_;  ///< most wait for one key
  std::unique_ptr<WaitLink[]> several_;
};

}  // namespace muster::core
