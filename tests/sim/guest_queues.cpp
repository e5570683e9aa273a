#include <algorithm>
#include <utility>

#include "body.h"
#include "core/memory/wheel.h"
#include "guest_model.h"
#include "oracle.h"

// Queues, which guests and their neighbours of Muster's own protocol share. An item is for the
// first client that waits: a neighbour pops it; a guest is notified, and the item is reserved for
// the guest until its next step, its end, or the end of the grace.

namespace muster::sim {

std::size_t GuestModel::free_items(const Store& store, const std::string& key) const {
  const auto queue = store.queues.find(key);
  if (queue == store.queues.end()) return 0;
  const auto offers = store.offers.find(key);
  const std::size_t kept = offers == store.offers.end() ? 0 : offers->second;
  return queue->second.size() - std::min(queue->second.size(), kept);
}

void GuestModel::push(Store& store, const std::string& key, const std::string& item) {
  store.queues[key].push_back(item);
  serve_queue(store, key);
}

void GuestModel::serve_queue(Store& store, const std::string& key) {
  std::list<WaitPlace>& waiting = store.waiting[key];
  std::list<WaitPlace>& pops = store.pops[key];
  const auto is_given_up = [](const WaitPlace& place) { return place->guest == nullptr; };
  waiting.remove_if(is_given_up);
  pops.remove_if(is_given_up);
  while (free_items(store, key) != 0 && !(waiting.empty() && pops.empty())) {
    const bool is_guests_turn =
        !waiting.empty() && (pops.empty() || waiting.front()->number < pops.front()->number);
    std::list<WaitPlace>& served = is_guests_turn ? waiting : pops;
    const WaitPlace first = served.front();
    served.pop_front();
    Guest& guest = *first->guest;
    if (!is_guests_turn) {
      guest.waits.erase(first);
      owe(guest, take_first(store, key));
    } else if (comes(*first)) {
      offer(guest, key);
    }
  }
}

void GuestModel::offer(Guest& guest, const std::string& key) {
  if (guest.offer) return;
  guest.offer = key;
  guest.offer_number = ++last_offer_;
  // The server's timers fire at whole ticks.
  const Duration::rep tick = core::wheel_tick.count();
  const Duration::rep end = (now_ + terms_.grace).time_since_epoch().count();
  guest.offer_ends = Instant(Duration((end + tick - 1) / tick * tick));
  ++guest.store->offers[key];
}

void GuestModel::end_offer(Guest& guest) {
  if (!guest.offer) return;
  const std::string key = *std::exchange(guest.offer, std::nullopt);
  --guest.store->offers[key];
  serve_queue(*guest.store, key);
}

/// Those whose grace is over, in the order of the server's timers.
void GuestModel::end_old_offers(Instant now) {
  std::map<std::pair<Instant, std::uint64_t>, Connection> old;
  for (const auto& [id, guest] : guests_) {
    const bool is_old = guest.offer && guest.offer_ends <= now;
    if (is_old) old.emplace(std::pair(guest.offer_ends, guest.offer_number), id);
  }
  for (const auto& [place, id] : old) {
    Guest& guest = guests_.at(id);
    note(guest, "has no item reserved any more:");
    end_offer(guest);
  }
}

/// The last item goes with all that was kept of them.
std::string GuestModel::take_first(Store& store, const std::string& key) {
  const auto found = store.queues.find(key);
  const std::string first = found->second.front();
  found->second.pop_front();
  if (!found->second.empty()) return first;
  store.queues.erase(found);
  store.offers.erase(key);
  for (auto& [id, guest] : guests_) {
    if (guest.store == &store && guest.offer == key) guest.offer.reset();
  }
  return first;
}

/// A guest takes no item that is reserved for another one.
void GuestModel::pop(Guest& guest, const std::string& key) {
  const bool may_pop = free_items(*guest.store, key) != 0 || guest.offer == key;
  if (!may_pop) return owe(guest, number_bytes(0));
  const auto found = guest.store->queues.find(key);
  const auto count = static_cast<std::int64_t>(found->second.size());
  owe(guest, number_bytes(count) + sized_bytes(take_first(*guest.store, key)));
}

void GuestModel::own_is_refused() {
  if (!terms_.is_memory_short) oracle_.problem("a neighbour of guests is refused");
}

void GuestModel::own_waits(Connection neighbour, const std::string& key) {
  Guest& guest = guests_.at(neighbour);
  if (free_items(*guest.store, key) != 0) problem(guest, "a neighbour waits for what is there");
  const auto place = std::make_shared<Wait>(Wait{&guest, 1, ++last_wait_});
  guest.store->pops[key].push_back(place);
  guest.waits.insert(place);
}

bool GuestModel::own_of_queue(Store& store, const wire::RequestBody& body, std::uint16_t code,
                              const std::string& reply) {
  if (const auto* pushes = std::get_if<wire::QueuePush>(&body)) {
    const std::string key(pushes->key);
    const auto found = store.queues.find(key);
    const std::size_t before = found == store.queues.end() ? 0 : found->second.size();
    push(store, key, std::string(pushes->item));
    const bool is_right =
        body_of<wire::NumberReply>(reply).number == static_cast<std::int64_t>(before + 1);
    if (!is_right) oracle_.problem("a neighbour is told another count");
  } else if (const auto* length = std::get_if<wire::QueueLength>(&body)) {
    const auto found = store.queues.find(std::string(length->key));
    const std::size_t count = found == store.queues.end() ? 0 : found->second.size();
    const bool is_right =
        body_of<wire::NumberReply>(reply).number == static_cast<std::int64_t>(count);
    if (!is_right) oracle_.problem("a neighbour counts other items than guests");
  } else if (const auto* pops = std::get_if<wire::QueuePop>(&body)) {
    const std::string key(pops->key);
    if ((free_items(store, key) != 0) != (code == 0)) {
      oracle_.problem("a neighbour finds an item or none, and should not: " + key);
    } else if (code == 0 && body_of<wire::ValueReply>(reply).value != take_first(store, key)) {
      oracle_.problem("a neighbour pops another item than the first: " + key);
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace muster::sim
