#include "client/protocol/calls.h"

#include <algorithm>

namespace muster::client::protocol {

Call& Calls::add(Call call, Instant wake) {
  const std::uint64_t id = call.id;
  by_wake_.emplace(wake, id);
  return by_id_.emplace(id, Entry{std::move(call), wake}).first->second.call;
}

Call* Calls::find(std::uint64_t id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.call;
}

Call Calls::remove(std::uint64_t id) {
  const auto found = by_id_.find(id);
  by_wake_.erase({found->second.wake, id});
  Call call = std::move(found->second.call);
  by_id_.erase(found);
  return call;
}

std::vector<Call> Calls::remove_all() {
  std::vector<Call> calls;
  calls.reserve(by_id_.size());
  for (auto& [id, entry] : by_id_) calls.push_back(std::move(entry.call));
  by_id_.clear();
  by_wake_.clear();
  return calls;
}

Call* Calls::first_unsent() {
  const auto found = by_id_.upper_bound(last_sent_);
  return found == by_id_.end() ? nullptr : &found->second.call;
}

void Calls::mark_sent(Call& call, std::uint64_t serial) {
  call.serial = serial;
  last_sent_ = std::max(last_sent_, call.id);
}

std::vector<std::uint64_t> Calls::sent_ids() const {
  std::vector<std::uint64_t> ids;
  for (auto at = by_id_.begin(); at != by_id_.end() && at->first <= last_sent_; ++at) {
    ids.push_back(at->first);
  }
  return ids;
}

Call* Calls::due(Instant now) {
  if (by_wake_.empty() || by_wake_.begin()->first > now) return nullptr;
  return find(by_wake_.begin()->second);
}

void Calls::wake_at(const Call& call, Instant wake) {
  Entry& entry = by_id_.find(call.id)->second;
  by_wake_.erase({entry.wake, call.id});
  entry.wake = wake;
  by_wake_.emplace(wake, call.id);
}

Instant Calls::next_wake() const {
  return by_wake_.empty() ? base::far_future : by_wake_.begin()->first;
}

}  // namespace muster::client::protocol
