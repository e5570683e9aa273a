#pragma once

#include <cstdint>
#include <memory>

#include "core/keys/entry.h"
#include "core/memory/slab.h"
#include "core/memory/wheel.h"
#include "core/session/engine_services.h"

namespace muster::core {

/// When the keys of a table go. Their deadlines stand in a wheel of the table's own, and one timer
/// of the server's for the next time at which that has work. When a deadline moves to a later one,
/// as it does with every `set` and `touch` of a key that is kept alive, nothing moves in the wheel:
/// it looks again at the earlier one.
class KeyDeadlines {
 public:
  /// `owner` gets the timer, of kind key.
  KeyDeadlines(EngineServices& services, Slab<Entry>& entries, void* owner)
      : services_(services), entries_(entries), timer_(TimerKind::key, owner) {}
  ~KeyDeadlines();
  KeyDeadlines(const KeyDeadlines&) = delete;
  KeyDeadlines& operator=(const KeyDeadlines&) = delete;

  void set(Entry& entry, Instant deadline);

  // What the timer is for: keys are taken until none is due, then it is armed again.

  /// A key whose deadline has passed; it has none any more. Null: none is found yet.
  Entry* take_due();
  /// Whether others are due, for which `take_due` has to look further.
  bool has_due() const { return wheel_->next_deadline() <= services_.now(); }
  void rearm();

 private:
  void count();

  EngineServices& services_;
  Slab<Entry>& entries_;
  std::unique_ptr<Wheel<EntryLinks>> wheel_;  ///< made with the first
  Timer timer_;
  std::uint64_t counted_ = 0;  ///< among what the server holds
};

}  // namespace muster::core
