#include "guest_model.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "body.h"
#include "oracle.h"

// Every key that comes is one that those who wait for it have seen, whatever becomes of it. An item
// that is pushed is seen by the first of them alone.

namespace muster::sim {
namespace {

using Command = GuestRequest::Command;

const std::string stop_waiting(1, '\0');
const std::string wait_cancelled(1, '\1');

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || read != end) return std::nullopt;
  return number;
}

std::string in_hex(std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes.substr(0, 40)) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[byte & 15];
  }
  return std::to_string(bytes.size()) + ":" + text;
}

/// Takes a number, or bytes with their length, from the front.
std::int64_t take_number(std::string_view& bytes) {
  std::int64_t number = 0;
  for (std::size_t index = 8; index > 0; --index) {
    number = number << 8 | (index <= bytes.size() ? bytes[index - 1] & 0xff : 0);
  }
  bytes.remove_prefix(std::min<std::size_t>(8, bytes.size()));
  return number;
}

std::string take_sized(std::string_view& bytes) {
  const auto size = static_cast<std::size_t>(take_number(bytes));
  const std::string taken(bytes.substr(0, size));
  bytes.remove_prefix(taken.size());
  return taken;
}

}  // namespace

void GuestModel::problem(const Guest& guest, const std::string& what) {
  const std::string about = guest.sent.empty() ? "" : ", at " + guest.sent.front().request.text();
  oracle_.problem("guest " + std::to_string(guest.id) + about + ": " + what);
}

void GuestModel::note(const Guest& guest, const std::string& what) {
  trace_.note(oracle_.now(), "guest", guest.id, [&] {
    const std::string about = guest.sent.empty() ? "" : guest.sent.front().request.text();
    return std::to_string(guest.id) + " " + what + " " + about;
  });
}

void GuestModel::sends(Connection guest, const GuestRequest& request, std::size_t bytes_count) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  found->second.sent_bytes += bytes_count;
  found->second.sent.push_back({request, found->second.sent_bytes});
}

void GuestModel::started() {
  guests_.clear();
  stores_.clear();
  touched_.clear();
  gone_.clear();
}

void GuestModel::came(Connection guest, const std::string& name_space, Instant now) {
  Store& store = stores_[name_space];
  const bool is_over = store.guests == 0 && now - store.idle_since >= terms_.idle_lifetime;
  if (is_over) store = Store{};
  guests_[guest].store = &store;
  ++store.guests;
}

void GuestModel::arrived(Connection guest, std::size_t bytes_count) {
  guests_.at(guest).arrived_bytes += bytes_count;
}

void GuestModel::reads(Connection id, const server::tcpstore::Request& request) {
  Guest& guest = guests_.at(id);
  if (guest.sent.empty()) return problem(guest, "a request that it has not sent is read");
  if (guest.sent.front().end > guest.arrived_bytes) problem(guest, "it is read before it is whole");
  if (!guest.sent.front().request.is_same(request)) problem(guest, "it is read as something else");
  guest.ends_waits = request.dialect == server::tcpstore::Dialect::first;
}

void GuestModel::has_read(Connection id) {
  const Guest& guest = guests_.at(id);
  if (guest.sent.empty() || guest.sent.front().end > guest.arrived_bytes) return;
  problem(guest, "it has come as a whole and is not handled");
}

void GuestModel::cannot_read(Connection id, bool is_for_memory) {
  Guest& guest = guests_.at(id);
  guest.is_ending = true;
  const bool is_unreadable = !guest.sent.empty() && !guest.sent.front().request.unreadable.empty();
  if (is_unreadable || (is_for_memory && terms_.is_memory_short)) return;
  problem(guest, "it cannot be read");
}

void GuestModel::said(Connection id, std::string_view bytes) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return oracle_.problem("bytes for a guest that is gone");
  found->second.said += bytes;
  touch(found->second);
}

void GuestModel::owe(Guest& guest, const std::string& bytes) {
  guest.owed += bytes;
  touch(guest);
}

void GuestModel::closed_by_engine(Connection id) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  const bool is_refused = found->second.store == nullptr && terms_.is_memory_short;
  if (!is_refused) problem(found->second, "its session ends");
}

void GuestModel::gone(Connection id, Instant now) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  Guest& guest = found->second;
  give_up(guest);
  end_offer(guest);
  note(guest, "is gone");
  gone_.insert(id);
  if (guest.store != nullptr && --guest.store->guests == 0) {
    guest.store->idle_since = now;
    if (terms_.idle_lifetime == Duration::zero()) *guest.store = Store{};
  }
  touched_.erase(id);
  guests_.erase(found);
}

/// Old reservations end, and stores that no guest has used for their lifetime.
void GuestModel::looked_at(Instant now) {
  end_old_offers(now);
  for (auto& [name, store] : stores_) {
    const bool is_idle = store.guests == 0 && !(store.values.empty() && store.queues.empty());
    if (is_idle && now - store.idle_since >= terms_.idle_lifetime) store = Store{};
  }
}

void GuestModel::answers_other(Connection connection) {
  if (gone_.count(connection) != 0) oracle_.problem("a guest that is gone is answered");
}

bool GuestModel::has_guests(const std::string& name_space) const {
  const auto found = stores_.find(name_space);
  return found != stores_.end() && found->second.guests != 0;
}

core::Counts GuestModel::counts() const {
  core::Counts counts;
  for (const auto& [id, guest] : guests_) {
    if (guest.store == nullptr) continue;
    ++counts.sessions;
    ++counts.connections;
    counts.waits += guest.waits.size();
  }
  for (const auto& [name, store] : stores_) {
    counts.keys += store.values.size();
    counts.queues += store.queues.size();
  }
  return counts;
}

void GuestModel::check() {
  for (const Connection id : std::exchange(touched_, {})) {
    Guest& guest = guests_.at(id);
    if (!guest.is_ending && guest.said != guest.owed) {
      problem(guest, "it is told " + in_hex(guest.said) + " and not " + in_hex(guest.owed));
    }
    guest.said.clear();
    guest.owed.clear();
  }
}

// Steps of requests.

void GuestModel::stepped(Connection id, bool is_refused) {
  Guest& guest = guests_.at(id);
  if (guest.sent.empty()) return;
  if (guest.ends_waits && guest.step == 0 && !guest.waits.empty()) {
    note(guest, "waits no more, since it");
    return give_up(guest);
  }
  const Command command = guest.sent.front().request.command;
  // A pop may take the item; the others are answered before the engine is asked.
  const bool ends_offer_later =
      command == Command::queue_pop || command == Command::ping || command == Command::cancel_wait;
  if (!ends_offer_later) end_offer(guest);
  const bool must_be = must_be_refused(guest);
  note(guest, is_refused ? "is refused" : guest.step == 0 ? "asks" : "goes on with");
  if (must_be && !is_refused) problem(guest, "it is carried out");
  if (is_refused && !must_be && !may_be_refused(guest)) problem(guest, "it is refused");
  guest.is_ending = is_refused;
  if (must_be || is_refused) return;
  if (command != Command::ping) ++guest.step;  // which the engine has no answer for
  carry_out(guest, guest.sent.front().request);
  if (ends_offer_later) end_offer(guest);
}

/// Its last answer goes before those of waits that were over meanwhile.
void GuestModel::done(Connection id) {
  Guest& guest = guests_.at(id);
  if (guest.sent.empty()) return;
  const GuestRequest& request = guest.sent.front().request;
  if (guest.listing) problem(guest, "there is no list");
  const bool is_cut = request.command == Command::multi_get && guest.step != request.keys.size();
  if (is_cut) problem(guest, "it is done before all values are there");
  if (guest.late != 0) owe(guest, std::string(guest.late, stop_waiting[0]));
  guest.listing.reset();
  guest.step = guest.late = 0;
  guest.is_released = false;
  guest.sent.pop_front();
  ++requests_count_;
}

bool GuestModel::has_come(const Store& store, const std::string& key) const {
  return store.values.count(key) != 0 || free_items(store, key) != 0;
}

bool GuestModel::must_be_refused(const Guest& guest) const {
  const GuestRequest& request = guest.sent.front().request;
  const Store& store = *guest.store;
  const bool has_all_waits = guest.waits.size() >= terms_.waits_max;
  switch (request.command) {
    case Command::watch_key: return true;
    case Command::add: return number_text(store, request.keys[0], request.number).empty();
    case Command::wait:
      return has_all_waits && !std::all_of(request.keys.begin(), request.keys.end(),
                                           [&](const auto& key) { return has_come(store, key); });
    case Command::barrier:
      if (guest.step == 0) return number_text(store, request.keys[0], 1).empty();
      return has_all_waits && guest.number < request.number && !guest.is_released;
    default: return false;
  }
}

/// For want of memory.
bool GuestModel::may_be_refused(const Guest& guest) const {
  if (!terms_.is_memory_short) return false;
  switch (guest.sent.front().request.command) {
    case Command::set:
    case Command::add:
    case Command::append:
    case Command::compare_set:
    case Command::multi_set:
    case Command::queue_push:
    case Command::barrier:
    case Command::wait:
    case Command::list_keys: return true;
    default: return false;
  }
}

/// The number at the key after it has grown; empty: it cannot.
std::string GuestModel::number_text(const Store& store, const std::string& key,
                                    std::int64_t delta) const {
  const auto found = store.values.find(key);
  const auto before = found == store.values.end() ? 0 : number_in(found->second);
  std::int64_t number = 0;
  if (!before || __builtin_add_overflow(*before, delta, &number)) return {};
  return std::to_string(number);
}

void GuestModel::carry_out(Guest& guest, const GuestRequest& request) {
  Store& store = *guest.store;
  const std::vector<std::string>& keys = request.keys;
  const auto value_of = [&](const std::string& key) {
    const auto found = store.values.find(key);
    return found == store.values.end() ? std::string() : found->second;
  };
  switch (request.command) {
    case Command::set: return set(store, keys[0], request.values[0]);
    case Command::append: return set(store, keys[0], value_of(keys[0]) + request.values[0]);
    case Command::get: return owe(guest, sized_bytes(value_of(keys[0])));
    case Command::multi_get: return owe(guest, sized_bytes(value_of(keys[guest.step - 1])));
    case Command::add: {
      const std::string text = number_text(store, keys[0], request.number);
      owe(guest, number_bytes(*number_in(text)));
      return set(store, keys[0], text);
    }
    case Command::delete_key: return owe(guest, number_bytes(remove(store, keys[0]) ? 1 : 0));
    case Command::compare_set: return compare_set(guest, request);
    case Command::multi_set:
      for (std::size_t index = 0; index < keys.size(); ++index) {
        set(store, keys[index], request.values[index]);
      }
      return;
    case Command::check: {
      const bool are_there = std::all_of(keys.begin(), keys.end(),
                                         [&](const auto& key) { return has_come(store, key); });
      return owe(guest, std::string(1, are_there ? '\0' : '\1'));
    }
    case Command::wait: return wait(guest, keys);
    case Command::count_keys:
      return owe(guest, number_bytes(static_cast<std::int64_t>(store.values.size())));
    case Command::queue_push: return push(store, keys[0], request.values[0]);
    case Command::queue_pop: return pop(guest, keys[0]);
    case Command::queue_length: {
      const auto found = store.queues.find(keys[0]);
      const std::size_t count = found == store.queues.end() ? 0 : found->second.size();
      return owe(guest, number_bytes(static_cast<std::int64_t>(count)));
    }
    case Command::list_keys: return list(guest);
    case Command::barrier: return arrive(guest, request);
    case Command::cancel_wait: owe(guest, wait_cancelled); return give_up(guest);
    case Command::ping: return owe(guest, number_bytes(request.number).substr(0, 4));
    default: return problem(guest, "it takes a step for this");
  }
}

void GuestModel::note_presence(const Store& store, const std::string& key, bool is_there) {
  for (auto& [id, guest] : guests_) {
    if (guest.store != &store || !guest.listing) continue;
    if (is_there) guest.listing->ever.insert(key);
    if (!is_there) guest.listing->always.erase(key);
  }
}

void GuestModel::set(Store& store, const std::string& key, std::string value) {
  const bool is_new = store.values.insert_or_assign(key, std::move(value)).second;
  if (!is_new) return;
  note_presence(store, key, true);
  release(store, key);
}

bool GuestModel::remove(Store& store, const std::string& key) {
  if (store.values.erase(key) == 0) return false;
  note_presence(store, key, false);
  return true;
}

/// Where nothing is expected, a key that is absent will do, and one that has no bytes: the server
/// asks for them by turns.
void GuestModel::compare_set(Guest& guest, const GuestRequest& request) {
  Store& store = *guest.store;
  const std::string& expected = request.values[0];
  const std::string& desired = request.values[1];
  const auto found = store.values.find(request.keys[0]);
  const bool is_there = found != store.values.end();
  const bool wants_absent = expected.empty() && guest.step % 2 == 1;
  if (is_there != wants_absent && (!is_there || found->second == expected)) {
    owe(guest, sized_bytes(desired));
    return set(store, request.keys[0], desired);
  }
  if (expected.empty() && (!is_there || found->second.empty())) return;
  owe(guest, sized_bytes(is_there ? found->second : expected));
}

/// At a barrier: the one that is the last lets all go.
void GuestModel::arrive(Guest& guest, const GuestRequest& request) {
  Store& store = *guest.store;
  const std::string& key = request.keys[0];
  if (guest.step == 1) {
    const std::string text = number_text(store, key, 1);
    guest.number = *number_in(text);
    return set(store, key, text);
  }
  if (guest.number < request.number && !guest.is_released) return wait(guest, {key});
  owe(guest, stop_waiting);
  if (guest.number < request.number) return;
  release(store, key);
  for (auto& [id, other] : guests_) {
    const bool arrives = other.store == &store && other.step == 1 && &other != &guest &&
                         other.sent.front().request.command == Command::barrier;
    if (arrives && other.sent.front().request.keys[0] == key) other.is_released = true;
  }
}

/// For keys that are not there, each of them once; at a barrier for what comes there next.
void GuestModel::wait(Guest& guest, const std::vector<std::string>& keys) {
  const bool is_barrier = guest.sent.front().request.command == Command::barrier;
  const auto place = std::make_shared<Wait>(Wait{&guest, 0, ++last_wait_});
  for (const std::string& key : std::set<std::string>(keys.begin(), keys.end())) {
    if (!is_barrier && has_come(*guest.store, key)) continue;
    guest.store->waiting[key].push_back(place);
    ++place->missing;
  }
  if (place->missing == 0) {
    const std::vector<std::string>& asked = guest.sent.front().request.keys;
    const bool has_one = asked.size() == 1;
    if (has_one && free_items(*guest.store, asked[0]) != 0) offer(guest, asked[0]);
    return owe(guest, stop_waiting);
  }
  guest.waits.insert(place);
}

void GuestModel::release(Store& store, const std::string& key) {
  for (const WaitPlace& place : std::exchange(store.waiting[key], {})) comes(*place);
}

bool GuestModel::comes(Wait& wait) {
  if (wait.guest == nullptr || --wait.missing != 0) return false;
  Guest& guest = *wait.guest;
  std::erase_if(guest.waits, [&wait](const WaitPlace& each) { return each.get() == &wait; });
  if (guest.step != 0) {
    ++guest.late;
  } else {
    owe(guest, stop_waiting);
  }
  return true;
}

void GuestModel::give_up(Guest& guest) {
  for (const WaitPlace& place : std::exchange(guest.waits, {})) place->guest = nullptr;
}

/// Page by page; all of them are sent at once.
void GuestModel::list(Guest& guest) {
  if (!guest.listing) {
    guest.listing.emplace();
    for (const auto& [key, value] : guest.store->values) guest.listing->always.insert(key);
    guest.listing->ever = guest.listing->always;
  }
  if (guest.said.size() > guest.owed.size()) check_listing(guest);
}

/// Each key once that was there all the time. Others that were there at some time may be in it; one
/// that was removed and set again in between also twice.
void GuestModel::check_listing(Guest& guest) {
  const std::size_t begin = guest.owed.size();  // of what an ended reservation has brought
  std::string_view left = guest.said;
  left.remove_prefix(begin);
  std::set<std::string> keys;
  std::int64_t listed_count = 0;
  for (std::int64_t count = take_number(left); count > 0 && !left.empty(); --count) {
    const std::string key = take_sized(left);
    ++listed_count;
    const bool is_twice = !keys.insert(key).second && guest.listing->always.count(key) != 0;
    if (is_twice) problem(guest, "twice in a list: " + key);
    if (guest.listing->ever.count(key) == 0) problem(guest, "not there, but in a list: " + key);
  }
  for (const std::string& key : guest.listing->always) {
    if (keys.count(key) == 0) problem(guest, "not in a list: " + key);
  }
  guest.listing.reset();
  const std::string all = number_bytes(listed_count);
  guest.owed += guest.said.substr(begin, guest.said.size() - left.size() - begin);
  if (guest.owed.substr(begin, all.size()) != all) problem(guest, "a list of another length");
}

/// What this client asks for has no second step, and no waits.
void GuestModel::own(const std::string& name_space, const wire::RequestBody& body,
                     std::uint16_t code, const std::string& reply) {
  Store& store = stores_.at(name_space);
  if (code != 0 && code != static_cast<std::uint16_t>(ErrorCode::not_found)) {
    return own_is_refused();
  }
  if (own_of_queue(store, body, code, reply)) return;
  if (const auto* set_it = std::get_if<wire::Set>(&body)) {
    return set(store, std::string(set_it->key), std::string(set_it->value));
  }
  if (const auto* multi_set = std::get_if<wire::MultiSet>(&body)) {
    for (const auto& entry : multi_set->entries) {
      set(store, std::string(entry.key), std::string(entry.value));
    }
    return;
  }
  if (const auto* taken = std::get_if<wire::Remove>(&body)) {
    const std::int64_t removed = remove(store, std::string(taken->keys[0])) ? 1 : 0;
    if (body_of<wire::NumberReply>(reply).number == removed) return;
    return oracle_.problem("a neighbour removes what guests have not, or does not");
  }
  const auto* const take = std::get_if<wire::Take>(&body);
  const std::string key(take != nullptr ? take->key : std::get<wire::Get>(body).key);
  const auto found = store.values.find(key);
  const bool is_there = found != store.values.end();
  if (is_there != (code == 0) ||
      (is_there && body_of<wire::ValueReply>(reply).value != found->second)) {
    oracle_.problem("a neighbour finds something else than guests: " + key);
  }
  if (take != nullptr && code == 0) remove(store, key);
}

}  // namespace muster::sim
