#include "core/keys/queues.h"

#include <memory>
#include <utility>

#include "core/keys/table_state.h"

namespace muster::core {
namespace {

/// Null: there is none.
const Queue* queue_at(const Entry* entry) {
  const KeyExtras* const extras = entry == nullptr ? nullptr : entry->block.extras();
  return extras == nullptr ? nullptr : extras->queue.get();
}

}  // namespace

std::size_t Queues::size_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->size();
}

std::uint64_t Queues::first_bytes_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->front()->view().size();
}

std::size_t Queues::push(Entry& entry, Payload item) {
  std::unique_ptr<Queue>& queue = entry.block.extras()->queue;
  if (queue == nullptr) {
    queue = std::make_unique<Queue>();
    ++count_;
  }
  queue->push_back(std::move(item));
  return queue->size();
}

Payload Queues::pop(Entry& entry) {
  Queue& queue = *entry.block.extras()->queue;
  Payload first = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) drop(entry);
  return first;
}

void Queues::drop(Entry& entry) {
  if (queue_at(&entry) == nullptr) return;
  entry.block.extras()->queue.reset();
  --count_;
  table_.drop_if_unused(entry);
}

}  // namespace muster::core
