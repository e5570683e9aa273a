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

// How parked get, take, wait and queue_pop requests stand at the keys that they wait for.

namespace muster::core {

struct Entry;
struct KeyWait;
struct TableState;

/// One wait's place at one key.
struct WaitLink {
  KeyWait* wait = nullptr;
  Entry* entry = nullptr;  ///< null: it stands in a queue of readers, or at its key no more
  ChainLink<WaitLink> at_key{*this};
};

/// Those who wait to read one key and no other, in the order in which they came. When the key comes
/// that is decided for all of them at once: the queue leaves the key, with what they get, and
/// whoever is in it is yet to be told. See core/keys/decision.h.
struct Readers {
  /// At a key; or decided, if `its_entry` is null.
  Readers(Quota& its_quota, Entry* its_entry);
  ~Readers();
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  void append(WaitLink& link);

  Quota& quota;
  Entry* entry;  ///< null: decided
  Chain<WaitLink> waits;
  std::size_t count = 0;
  Payload value;  ///< what those get who are told in later events
};

/// All who wait at one key.
struct Waiting {
  std::unique_ptr<Readers> readers;  ///< get, wait: a value that comes serves all; null: none
  Chain<WaitLink> several;           ///< wait for several keys: it may serve some
  Chain<WaitLink> takers;            ///< take: it serves the first

  bool empty() const { return readers == nullptr && several.empty() && takers.empty(); }
};

/// The error of a get, take or wait whose keys are not there; `timeout` is that of the call.
Error absent_error(ErrorCode code, const std::vector<std::string_view>& missing, Duration timeout);

/// The error of a pop that finds nothing in the queue of the key.
Error no_item_error(ErrorCode code, std::string_view key, Duration timeout);

/// A parked get, take, wait or queue_pop. Life: stands at all its keys, counting those that are
/// missing -> the last of them comes (checked: has another expired meanwhile?): it is decided ->
/// answered; or the deadline, an abandon, or the session's end destroys it first. A deadline that
/// passes when it is decided finds the answer. Its destructor leaves all lists.
struct KeyWait final : Wait {
  /// Takes over a charge of `charged_bytes(key_count)` that was made already.
  KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count);
  ~KeyWait() override;

  /// Stands at one more key, behind those who came before.
  void stand_at(Entry& entry);
  /// One of a guest's keys has come, or something in the key's queue: it waits for that key no
  /// more, also if it goes again. Returns whether it was the last one.
  bool has_come(WaitLink& link);
  /// All its keys are there, of which there are several: it leaves them for a queue of those who
  /// are yet to be told.
  void decide(Readers& decided);
  bool is_decided() const override { return readers != nullptr && readers->entry == nullptr; }
  Answer decided_answer() const;

  static std::uint64_t charged_bytes(std::size_t key_count) {
    return sizeof(KeyWait) + (key_count == 1 ? 0 : key_count * sizeof(WaitLink));
  }

  void timed_out() override;
  std::string target() const override;

  TableState& table;
  Readers* readers = nullptr;      ///< in whose queue it stands; null: at its keys
  std::span<WaitLink> links;       ///< one per key, in the request's order
  std::size_t standing_count = 0;  ///< how many of the links are in a list
  std::size_t missing_count = 0;   ///< how many of its keys are absent
  std::uint64_t number = 0;        ///< in the order in which they came
  bool queued = false;             ///< about to be served, see TableState::serve

 private:
  bool pops() const;
  template <class Take>
  void each_missing(Instant at, Take take) const;
  void leave_keys();
  void leave_readers();

  WaitLink only_;  ///< most wait for one key
  std::unique_ptr<WaitLink[]> several_;
};

}  // namespace muster::core
