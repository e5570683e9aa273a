#include "core/keys/queues.h"

#include <algorithm>
#include <utility>

#include "core/keys/table_state.h"

namespace muster::core {
namespace {

/// Null: there is none.
const Queue* queue_at(const Entry* entry) {
  const KeyExtras* const extras = entry == nullptr ? nullptr : entry->block.extras();
  const bool has_one = extras != nullptr && extras->guests != nullptr;
  return has_one && !extras->guests->queue.empty() ? &extras->guests->queue : nullptr;
}

}  // namespace

std::size_t Queues::size_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->size();
}

std::size_t Queues::free_at(const Entry* entry) {
  if (queue_at(entry) == nullptr) return 0;
  const GuestExtras& guests = *entry->block.extras()->guests;
  return guests.queue.size() - std::min(guests.queue.size(), guests.offers_count);
}

std::uint64_t Queues::first_bytes_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->front()->view().size();
}

std::size_t Queues::push(Entry& entry, Payload item) {
  Queue& queue = entry.block.extras()->of_guests().queue;
  if (queue.empty()) {
    ++count_;
    ++table_.services.counted().held.queues;
  }
  queue.push_back(std::move(item));
  return queue.size();
}

Payload Queues::pop(Entry& entry) {
  Queue& queue = entry.block.extras()->guests->queue;
  Payload first = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) has_emptied(entry);
  return first;
}

void Queues::drop(Entry& entry) {
  if (queue_at(&entry) == nullptr) return;
  entry.block.extras()->guests->queue.clear();
  has_emptied(entry);
}

void Queues::offer(Entry& entry, Session& guest) {
  if (guest.keys.offer == nullptr) guest.keys.offer = std::make_unique<Offer>();
  Offer& offer = *guest.keys.offer;
  if (offer.at_key.linked()) return;
  offer.key = entry.block.extras();
  offer.key->guests->offers.append(offer.at_key);
  ++offer.key->guests->offers_count;
}

Entry* Queues::end_offer(Session& guest) {
  if (guest.keys.offer == nullptr || !guest.keys.offer->at_key.linked()) return nullptr;
  guest.keys.offer->at_key.leave();
  --guest.keys.offer->key->guests->offers_count;
  return &guest.keys.offer->key->entry;
}

/// Who was told of an item finds none.
void Queues::has_emptied(Entry& entry) {
  --count_;
  --table_.services.counted().held.queues;
  GuestExtras& guests = *entry.block.extras()->guests;
  while (!guests.offers.empty()) guests.offers.first().at_key.leave();
  guests.offers_count = 0;
  table_.drop_if_unused(entry);
}

}  // namespace muster::core
