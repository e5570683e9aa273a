#include "queue_model.h"

#include <algorithm>

#include "oracle.h"

namespace muster::sim {

void QueueModel::problem(const Key& key, const std::string& what) const {
  oracle_.problem("queue " + key.second + ": " + what);
}

void QueueModel::push_begins(const Key& key, const std::string& item) {
  Queue& queue = queues_[key];
  queue.items[item].begun = ++tick_;
  ++queue.may_be_pushed;
}

void QueueModel::pushed(const Key& key, const std::string& item, std::int64_t count) {
  Queue& queue = queues_[key];
  queue.items[item].pushed = ++tick_;
  ++queue.pushed;
  if (count < 1 || count > queue.may_be_pushed) problem(key, "a push is told another count");
}

void QueueModel::push_failed(const Key& key, const std::string& item, bool in_doubt) {
  if (in_doubt) return;
  Queue& queue = queues_[key];
  queue.items[item].refused = true;
  --queue.may_be_pushed;
}

QueueModel::Tick QueueModel::pop_begins(const Key& key) {
  ++queues_[key].pops_pending;
  return ++tick_;
}

void QueueModel::popped(const Key& key, Tick begun, const std::string& text) {
  Queue& queue = queues_[key];
  --queue.pops_pending;
  ++queue.popped;
  const auto found = queue.items.find(text);
  if (found == queue.items.end()) return problem(key, "an item that nobody pushed: " + text);
  Item& item = found->second;
  if (item.refused) problem(key, "an item that was refused: " + text);
  if (item.popped != 0) problem(key, "an item is popped twice: " + text);
  item.popped = ++tick_;
  item.asked = begun;
  if (item.pushed == 0) return;
  // Of one that was given back, or may have been, only while it was there again.
  const bool is_late = std::any_of(queue.items.begin(), queue.items.end(), [&](const auto& each) {
    const Item& later = each.second;
    return later.begun > item.pushed && later.popped != 0 && later.popped < begun &&
           later.popped < queue.first_doubt && (item.back == 0 || later.asked > item.back);
  });
  if (is_late) problem(key, "an item is popped behind one that was pushed later: " + text);
}

void QueueModel::popped_nothing(const Key& key, Tick begun) {
  Queue& queue = queues_[key];
  --queue.pops_pending;
  const auto left = std::count_if(queue.items.begin(), queue.items.end(), [&](const auto& each) {
    const Item& item = each.second;
    return item.pushed != 0 && item.pushed < begun && item.back < begun && item.popped == 0;
  });
  if (left > queue.pops_pending + queue.pops_in_doubt) problem(key, "a pop misses what is there");
}

void QueueModel::pop_failed(const Key& key, Tick begun, bool in_doubt) {
  Queue& queue = queues_[key];
  --queue.pops_pending;
  if (!in_doubt) return;
  ++queue.pops_in_doubt;
  queue.first_doubt = std::min(queue.first_doubt, begun);
}

void QueueModel::may_come_back(const Key& key, const std::string& text) {
  const auto found = queues_[key].items.find(text);
  if (found == queues_[key].items.end()) return problem(key, "nobody pushed it: " + text);
  if (found->second.popped != 0) problem(key, "an item is popped twice: " + text);
  found->second.back = unknown;
  ++found->second.holders;
}

/// Another pop may have it since, and may have answered before this one.
void QueueModel::given_back(const Key& key, const std::string& text, bool in_doubt) {
  Queue& queue = queues_[key];
  Item& item = queue.items[text];
  --queue.pops_pending;
  --item.holders;
  if (in_doubt) {
    ++queue.pops_in_doubt;
    item.is_in_doubt = true;
  } else {
    ++queue.given_back;
    if (item.holders == 0 && !item.is_in_doubt) item.back = ++tick_;
  }
}

QueueModel::Seen QueueModel::look_begins(const Key& key) const {
  const auto found = queues_.find(key);
  if (found == queues_.end()) return {};
  return {found->second.pushed, found->second.popped, found->second.given_back};
}

void QueueModel::counted(const Key& key, Seen before, std::int64_t count) const {
  const auto found = queues_.find(key);
  const Queue& queue = found == queues_.end() ? Queue() : found->second;
  if (count > queue.may_be_pushed - before.popped) problem(key, "there are more than were pushed");
  const std::int64_t returned = queue.given_back - before.given_back;  // it may have been away then
  const std::int64_t taken = queue.popped + queue.pops_pending + queue.pops_in_doubt + returned;
  if (count < before.pushed - taken) problem(key, "there are less than nobody has popped");
}

std::set<QueueModel::Key> QueueModel::queues() const {
  std::set<Key> keys;
  for (const auto& entry : queues_) keys.insert(entry.first);
  return keys;
}

}  // namespace muster::sim
