#include "key_model.h"

#include <vector>

#include "oracle.h"

namespace muster::sim {

void KeyModel::problem(const Key& key, const std::string& what) {
  oracle_.problem("key " + key.second + ": " + what);
}

std::int64_t KeyModel::add_begins(const Key& key) {
  Counter& counter = counters_[key];
  ++counter.begun;
  return counter.highest;
}

void KeyModel::added(const Key& key, std::int64_t floor, std::int64_t number) {
  Counter& counter = counters_[key];
  ++counter.confirmed;
  if (!counter.numbers.insert(number).second) problem(key, "two adds got the same number");
  if (number <= floor) problem(key, "an add got a number that was there before it began");
  if (number > counter.begun - counter.refused) problem(key, "more was added than anybody asked");
  counter.highest = std::max(counter.highest, number);
}

void KeyModel::add_failed(const Key& key, bool in_doubt) {
  if (!in_doubt) ++counters_[key].refused;
}

void KeyModel::counted(const Key& key, std::int64_t number) {
  const Counter& counter = counters_[key];
  if (number < counter.confirmed) problem(key, "an add that was answered is not there");
  if (number > counter.begun - counter.refused) problem(key, "something was added twice");
}

void KeyModel::append_begins(const Key& key, const std::string& token) {
  logs_[key].begun.insert(token);
}
void KeyModel::appended(const Key& key, const std::string& token) {
  logs_[key].confirmed.insert(token);
}
void KeyModel::append_failed(const Key& key, const std::string& token, bool in_doubt) {
  if (!in_doubt) logs_[key].refused.insert(token);
}

void KeyModel::read_log(const Key& key, const std::string& text) {
  const Log& log = logs_[key];
  std::map<std::string, int> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find(';', at);
    ++found[text.substr(at, end - at)];
    at = end == std::string::npos ? text.size() : end + 1;
  }
  for (const auto& [token, count] : found) {
    if (count != 1) problem(key, token + " was appended twice");
    if (log.begun.count(token) == 0) problem(key, token + " was appended by nobody");
    if (log.refused.count(token) != 0) problem(key, token + " was refused and is there");
  }
  for (const std::string& token : log.confirmed) {
    if (found.count(token) == 0) problem(key, token + " was appended and is not there");
  }
}

KeyModel::Tick KeyModel::write_begins(const Key& key, const std::string& value) {
  registers_[key].writes[value].begun = ++tick_;
  return tick_;
}

void KeyModel::written(const Key& key, const std::string& value) {
  Register& place = registers_[key];
  Write& write = place.writes[value];
  write.ended = ++tick_;
  place.floor = std::max(place.floor, write.begun);
}

void KeyModel::write_failed(const Key& key, const std::string& value, bool in_doubt) {
  if (!in_doubt) registers_[key].writes[value].refused = true;
}

KeyModel::Tick KeyModel::read_begins(const Key& key) { return registers_[key].floor; }

void KeyModel::read(const Key& key, Tick floor, const std::optional<std::string>& value) {
  const Register& place = registers_[key];
  if (!value) {
    if (floor != 0) problem(key, "it was written and is absent");
    return;
  }
  const auto found = place.writes.find(*value);
  if (found == place.writes.end()) return problem(key, "it holds what nobody wrote: " + *value);
  const Write& write = found->second;
  if (write.refused) problem(key, "it holds what was refused: " + *value);
  if (write.ended != 0 && write.ended < floor) problem(key, "an old value was read: " + *value);
}

void KeyModel::replaced(const Key& key, const std::string& old) {
  if (!registers_[key].replaced.insert(old).second) problem(key, "replaced twice: " + old);
}

void KeyModel::item_begins(const Key& key) { items_[key].set_begun = true; }
void KeyModel::item_is_set(const Key& key) { items_[key].set_confirmed = true; }
void KeyModel::item_failed(const Key& key, bool in_doubt) {
  if (!in_doubt) items_[key].set_refused = true;
}
void KeyModel::take_begins(const Key& key) { ++items_[key].takes_pending; }

void KeyModel::taken(const Key& key, const std::string& value) {
  Item& item = items_[key];
  --item.takes_pending;
  if (value != key.second) problem(key, "a taker got another key's value: " + value);
  if (!item.set_begun) problem(key, "a taker got what nobody has set");
  if (item.set_refused) problem(key, "a taker got what was refused");
  if (++item.taken > 1) problem(key, "two takers got it");
}

void KeyModel::take_failed(const Key& key, bool in_doubt) {
  Item& item = items_[key];
  --item.takes_pending;
  if (in_doubt) ++item.takes_in_doubt;
}

void KeyModel::given_back(const Key& key, bool in_doubt) {
  take_failed(key, in_doubt);
  ++items_[key].given_back;
}

KeyModel::Seen KeyModel::look_begins(const Key& key) {
  const Item& item = items_[key];
  return {item.set_confirmed, item.taken > 0, item.given_back};
}

void KeyModel::item_seen(const Key& key, Seen before, bool present) {
  const Item& item = items_[key];
  if (present && before.is_taken) problem(key, "it was taken and is there");
  if (present && item.set_refused) problem(key, "it was refused and is there");
  if (present && !item.set_begun) problem(key, "nobody set it and it is there");
  if (!present && is_surely_there(key, before)) problem(key, "nobody took it and it is gone");
}

bool KeyModel::is_surely_there(const Key& key, Seen before) const {
  const auto found = items_.find(key);
  if (found == items_.end() || !before.is_set) return false;
  const Item& item = found->second;
  return item.taken + item.takes_in_doubt + item.takes_pending == 0 &&
         item.given_back == before.given_back;
}

std::map<KeyModel::Key, std::int64_t> KeyModel::counters() const {
  std::map<Key, std::int64_t> counters;
  for (const auto& [key, counter] : counters_) counters[key] = counter.confirmed;
  return counters;
}

std::set<KeyModel::Key> KeyModel::logs() const {
  std::set<Key> keys;
  for (const auto& entry : logs_) keys.insert(entry.first);
  return keys;
}

std::set<KeyModel::Key> KeyModel::items() const {
  std::set<Key> keys;
  for (const auto& entry : items_) keys.insert(entry.first);
  return keys;
}

}  // namespace muster::sim
