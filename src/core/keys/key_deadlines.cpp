#include "core/keys/key_deadlines.h"

#include <utility>

namespace muster::core {

KeyDeadlines::~KeyDeadlines() { services_.counted().held.timers -= counted_; }

void KeyDeadlines::set(Entry& entry, Instant deadline) {
  if (deadline == entry.deadline) return;
  if (deadline != base::far_future && wheel_ == nullptr) {
    wheel_ = std::make_unique<Wheel<EntryLinks>>(EntryLinks{&entries_});
  }
  const Instant before = std::exchange(entry.deadline, deadline);
  const bool was_armed = before != base::far_future;
  if (deadline == base::far_future) {
    wheel_->remove(entry.slot);
    if (wheel_->armed_count() == 0) timer_.disarm();
    return count();
  }
  if (was_armed && deadline > before) return;  // the wheel looks at the earlier one
  if (was_armed) wheel_->remove(entry.slot);
  if (!timer_.armed() || services_.now() < timer_.at()) wheel_->skip_to(services_.now());
  const Instant due = wheel_->add(entry.slot);
  if (!timer_.armed() || due < timer_.at()) services_.timers().arm(timer_, due);
  count();
}

Entry* KeyDeadlines::take_due() {
  const std::uint32_t slot = wheel_->take_due(services_.now());
  if (slot == Entry::none) return nullptr;
  Entry& entry = entries_[slot];
  entry.deadline = base::far_future;  // no longer armed
  return &entry;
}

void KeyDeadlines::rearm() {
  services_.timers().arm(timer_, wheel_->next_deadline());
  count();
}

/// The timer stands for all of them among the engine's.
void KeyDeadlines::count() {
  const std::uint64_t count = wheel_->armed_count() - (timer_.armed() ? 1 : 0);
  services_.counted().held.timers += count - counted_;
  counted_ = count;
}

}  // namespace muster::core
