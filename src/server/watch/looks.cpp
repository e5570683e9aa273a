#include "server/watch/looks.h"

#include <algorithm>
#include <utility>

namespace muster::server {

std::shared_ptr<const core::Looked> Looks::latest(const core::Look& look, base::Instant now) {
  const std::lock_guard lock(mutex_);
  return ask(look, now);
}

std::shared_ptr<const core::Looked> Looks::latest(const core::Look& look, base::Instant now,
                                                  Duration wait_max) {
  std::unique_lock lock(mutex_);
  auto seen = ask(look, now);
  if (seen != nullptr || wait_max <= Duration::zero()) return seen;
  const auto is_there = [&] {
    const auto found = entries_.find(look);
    return is_closed_ || found == entries_.end() || !found->second.is_wanted;
  };
  newer_.wait_for(lock, wait_max, is_there);
  const auto found = entries_.find(look);
  return found == entries_.end() || found->second.is_wanted ? nullptr : found->second.seen;
}

std::shared_ptr<const core::Looked> Looks::ask(const core::Look& look, base::Instant now) {
  if (is_closed_) return nullptr;
  auto found = entries_.find(look);
  if (found == entries_.end()) {
    make_room(now);
    if (entries_.size() >= looks_max) return nullptr;  // others wait, too
    found = entries_.try_emplace(look).first;
  }
  Entry& entry = found->second;
  entry.asked_at = now;
  if (entry.seen != nullptr && now - entry.seen_at < fresh) return entry.seen;
  if (!std::exchange(entry.is_wanted, true)) wanted_.push_back(look);
  are_wanted_.store(true, std::memory_order_relaxed);
  return nullptr;
}

std::uint64_t Looks::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [look, entry] : entries_) {
    if (entry.seen != nullptr) bytes += entry.seen->bytes;
  }
  return bytes;
}

/// Who has not asked for some time goes, and, if need be, who has not for the longest time.
void Looks::make_room(base::Instant now) {
  std::erase_if(entries_, [now](const auto& each) {
    return !each.second.is_wanted && now - each.second.asked_at > kept_for;
  });
  while (entries_.size() >= looks_max || bytes() > bytes_max) {
    auto oldest = entries_.end();
    for (auto each = entries_.begin(); each != entries_.end(); ++each) {
      if (each->second.is_wanted) continue;
      if (oldest == entries_.end() || each->second.asked_at < oldest->second.asked_at)
        oldest = each;
    }
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
  }
}

bool Looks::take_next() {
  const std::lock_guard lock(mutex_);
  if (wanted_.empty()) {
    are_wanted_.store(false, std::memory_order_relaxed);
    return false;
  }
  look_ = std::move(wanted_.front());
  wanted_.pop_front();
  in_work_ = std::make_shared<core::Looked>();
  return true;
}

bool Looks::go_on(core::Inspector& inspector, base::Instant now) {
  if (!are_wanted() || (in_work_ == nullptr && !take_next())) return false;
  try {
    inspector.go_on(look_, *in_work_);
  } catch (...) {
    in_work_->pages.clear();
    in_work_->state = core::Looked::State::too_large;
  }
  if (in_work_->state != core::Looked::State::going_on) finish(now);
  return true;
}

void Looks::finish(base::Instant now) {
  if (in_work_->state == core::Looked::State::too_large) in_work_->pages.clear();
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(look_);
    if (found != entries_.end()) {
      found->second.seen = std::move(in_work_);
      found->second.seen_at = now;
      found->second.is_wanted = false;
    }
    in_work_ = nullptr;
    make_room(now);
  }
  newer_.notify_all();
}

void Looks::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    entries_.clear();
    wanted_.clear();
  }
  newer_.notify_all();
}

}  // namespace muster::server
