#include "client/protocol/calls.h"

#include <algorithm>

namespace muster::client::protocol {
namespace {

/// Of a call that is over: memory that is kept for the next one.
constexpr std::size_t kept_fields_bytes_max = 4096;

}  // namespace

Call& Calls::add(std::uint64_t id) {
  auto node = spare_entries_.take();
  if (node.empty()) {
    Call& call = by_id_[id].call;
    call.id = id;
    return call;
  }
  std::string fields = std::move(node.mapped().call.fields);  // for the memory
  fields.clear();
  node.key() = id;
  node.mapped() = Entry();
  Call& call = node.mapped().call;
  call.id = id;
  call.fields = std::move(fields);
  by_id_.insert(std::move(node));
  return call;
}

Call* Calls::find(std::uint64_t id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.call;
}

const Call* Calls::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.call;
}

void Calls::remove(const Call& call) {
  const auto found = by_id_.find(call.id);
  forget_wake(found->second);
  auto node = by_id_.extract(found);
  if (call.fields.capacity() <= kept_fields_bytes_max) spare_entries_.keep(std::move(node));
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

std::vector<std::uint64_t> Calls::passing_ids() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, entry] : by_id_) {
    if (!entry.call.is_lasting) ids.push_back(id);
  }
  return ids;
}

Call* Calls::due(Instant now) {
  if (by_wake_.empty() || by_wake_.begin()->first > now) return nullptr;
  return find(by_wake_.begin()->second);
}

void Calls::wake_at(const Call& call, Instant wake) {
  Entry& entry = by_id_.find(call.id)->second;
  forget_wake(entry);
  entry.wake = wake;
  if (wake == base::far_future) return;
  auto node = spare_wakes_.take();
  if (node.empty()) {
    by_wake_.emplace(wake, call.id);
  } else {
    node.value() = {wake, call.id};
    by_wake_.insert(std::move(node));
  }
}

void Calls::forget_wake(const Entry& entry) {
  const auto found = by_wake_.find({entry.wake, entry.call.id});
  if (found != by_wake_.end()) spare_wakes_.keep(by_wake_.extract(found));
}

Instant Calls::next_wake() const {
  return by_wake_.empty() ? base::far_future : by_wake_.begin()->first;
}

}  // namespace muster::client::protocol
