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

PoppedItem Queue::pop_front(std::uint64_t& last_number) {
  PoppedItem popped;
  if (given_back_.empty()) {
    popped = {std::move(items_.front()), ++last_number};
    items_.pop_front();
  } else {
    auto first = given_back_.extract(given_back_.begin());
    popped = {std::move(first.mapped()), first.key()};
  }
  return popped;
}

void Queue::clear() {
  given_back_.clear();
  items_.clear();
}

std::size_t Queues::size_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->size();
}

std::size_t Queues::free_at(const Entry* entry) {
  if (queue_at(entry) == nullptr) return 0;
  const GuestExtras& guests = *entry->block.extras()->guests;
  return guests.queue.size() - std::min(guests.queue.size(), guests.offers_count);
}

bool Queues::may_pop(const Entry* entry, const Session& guest) {
  if (free_at(entry) != 0) return true;
  const Offer* const offer = guest.keys.offer.get();
  const bool has_one = offer != nullptr && offer->at_key.linked();
  return has_one && entry != nullptr && offer->key == entry->block.extras();
}

std::uint64_t Queues::first_bytes_at(const Entry* entry) {
  const Queue* const queue = queue_at(entry);
  return queue == nullptr ? 0 : queue->front()->view().size();
}

std::size_t Queues::push(Entry& entry, Payload item) {
  Queue& queue = entry.block.extras()->of_guests().queue;
  will_fill(queue);
  queue.push_back(std::move(item));
  return queue.size();
}

PoppedItem Queues::pop(Entry& entry) {
  Queue& queue = entry.block.extras()->guests->queue;
  const std::uint64_t before_bytes = queue.given_back_bytes();
  PoppedItem first = queue.pop_front(last_popped_);
  quota_of(entry).release(before_bytes - queue.given_back_bytes());
  if (queue.empty()) has_emptied(entry);
  return first;
}

void Queues::put_back(Entry& entry, std::uint64_t number, Payload item) {
  Queue& queue = entry.block.extras()->of_guests().queue;
  will_fill(queue);
  queue.put_back(number, std::move(item));
  quota_of(entry).charge_always(Queue::given_back_item_bytes);
}

void Queues::drop(Entry& entry) {
  if (queue_at(&entry) == nullptr) return;
  Queue& queue = entry.block.extras()->guests->queue;
  quota_of(entry).release(queue.given_back_bytes());
  queue.clear();
  has_emptied(entry);
}

/// An item is put into it.
void Queues::will_fill(const Queue& queue) {
  if (!queue.empty()) return;
  ++count_;
  ++table_.services.counted().held.queues;
}

Quota& Queues::quota_of(const Entry& entry) const { return table_.accounts[entry.account].quota; }

void Queues::offer(Entry& entry, Session& guest) {
  if (guest.keys.offer == nullptr) guest.keys.offer = std::make_unique<Offer>(guest);
  Offer& offer = *guest.keys.offer;
  if (offer.at_key.linked()) return;
  offer.key = entry.block.extras();
  offer.key->guests->offers.append(offer.at_key);
  ++offer.key->guests->offers_count;
  const EngineServices& services = table_.services;
  table_.services.timers().arm(offer.end, services.now() + services.options().limits.grace);
}

Entry* Queues::end_offer(Session& guest) {
  if (guest.keys.offer == nullptr || !guest.keys.offer->at_key.linked()) return nullptr;
  guest.keys.offer->withdraw();
  --guest.keys.offer->key->guests->offers_count;
  return &guest.keys.offer->key->entry;
}

/// No item is left that could be reserved.
void Queues::has_emptied(Entry& entry) {
  --count_;
  --table_.services.counted().held.queues;
  GuestExtras& guests = *entry.block.extras()->guests;
  while (!guests.offers.empty()) guests.offers.first().withdraw();
  guests.offers_count = 0;
  table_.drop_if_unused(entry);
}

}  // namespace muster::core
