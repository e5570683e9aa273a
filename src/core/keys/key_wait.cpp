#include "core/keys/key_wait.h"

#include <algorithm>

#include "core/keys/table_state.h"
#include "core/keys/value_answers.h"
#include "core/session/failure.h"
#include "wire/operation_table.h"

namespace muster::core {
namespace {

constexpr std::size_t keys_told_of_max = 4;

}  // namespace

Error absent_error(ErrorCode code, const std::vector<std::string_view>& missing, Duration timeout) {
  std::string detail;
  for (std::size_t index = 0; index < std::min(missing.size(), keys_told_of_max); ++index) {
    if (index != 0) detail += ", ";
    detail += quoted_text(missing[index]);
  }
  if (missing.size() > keys_told_of_max) {
    detail += " and " + std::to_string(missing.size() - keys_told_of_max) + " more keys";
  }
  detail += missing.size() == 1 ? " is absent" : " are absent";
  if (code == ErrorCode::timed_out) {
    detail += " after " + in_seconds(timeout) + "; did the process start that sets it?";
  }
  return failure(code, std::move(detail));
}

Error no_item_error(ErrorCode code, std::string_view key, Duration timeout) {
  std::string detail = "the queue " + quoted_text(key) + " is empty";
  if (code == ErrorCode::timed_out) {
    detail += " after " + in_seconds(timeout) + "; did the process start that pushes there?";
  }
  return failure(code, std::move(detail));
}

Readers::Readers(Quota& its_quota, Entry* its_entry) : quota(its_quota), entry(its_entry) {
  quota.charge_always(readers_bytes);
}

Readers::~Readers() {
  // Nobody stands here any more, but after an event that ended for want of memory.
  while (!waits.empty()) {
    KeyWait& wait = *waits.first().wait;
    waits.first().at_key.leave();
    wait.readers = nullptr;
  }
  quota.release(readers_bytes);
}

void Readers::append(WaitLink& link) {
  waits.append(link.at_key);
  ++count;
}

KeyWait::KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count)
    : Wait(its_parked),
      table(its_table),
      links(&only_, 1),
      number(++its_table.serving.last_wait),
      several_(key_count == 1 ? nullptr : std::make_unique<WaitLink[]>(key_count)) {
  if (several_ == nullptr) return;
  links = {several_.get(), key_count};
  table.serving.places_of_several += key_count;
  parked.session.keys.places_of_several += key_count;
  parked.session.account.places_of_several += key_count;
}

KeyWait::~KeyWait() {
  readers != nullptr ? leave_readers() : leave_keys();
  if (several_ != nullptr) {
    table.serving.places_of_several -= links.size();
    parked.session.keys.places_of_several -= links.size();
    parked.session.account.places_of_several -= links.size();
  }
  parked.session.account.quota.release(charged_bytes(links.size()));
}

void KeyWait::leave_keys() {
  for (std::size_t index = 0; index < standing_count; ++index) {
    WaitLink& link = links[index];
    if (link.entry == nullptr) continue;
    link.at_key.leave();
    table.drop_if_unused(*link.entry);
  }
  standing_count = 0;
}

void KeyWait::leave_readers() {
  links.front().at_key.leave();
  if (--readers->count != 0 || readers->entry == nullptr) return;
  Entry& entry = *readers->entry;
  entry.block.extras()->waiting.readers.reset();
  table.drop_if_unused(entry);
}

bool KeyWait::pops() const { return parked.operation == wire::operation<wire::QueuePop>; }

void KeyWait::stand_at(Entry& entry) {
  WaitLink& link = links[standing_count];
  link.wait = this;
  KeyExtras& extras = *entry.block.extras();
  if (pops()) {
    link.entry = &entry;
    extras.of_guests().pops.append(link.at_key);
    ++standing_count;
    return;
  }
  if (parked.session.is_guest) {
    link.entry = &entry;
    extras.of_guests().waits.append(link.at_key);
    ++standing_count;
    ++missing_count;
    return;
  }
  Waiting& waiting = extras.waiting;
  if (parked.operation != wire::operation<wire::Take> && links.size() == 1) {
    if (waiting.readers == nullptr) {
      waiting.readers = std::make_unique<Readers>(parked.session.account.quota, &entry);
    }
    readers = waiting.readers.get();
    return readers->append(link);
  }
  link.entry = &entry;
  (links.size() > 1 ? waiting.several : waiting.takers).append(link.at_key);
  ++standing_count;
  if (!entry.has_value) ++missing_count;
}

bool KeyWait::has_come(WaitLink& link) {
  link.at_key.leave();
  link.entry = nullptr;
  return --missing_count == 0;
}

void KeyWait::decide(Readers& decided) {
  leave_keys();
  readers = &decided;
  readers->append(links.front());
}

Answer KeyWait::decided_answer() const {
  const bool reads_value = parked.operation == wire::operation<wire::Get>;
  return reads_value ? value_answer(readers->value) : Answer{};
}

/// Of its keys, those that were not there at `at`.
template <class Take>
void KeyWait::each_missing(Instant at, Take take) const {
  if (is_decided()) return;
  if (readers != nullptr) return take(*readers->entry);
  for (const WaitLink& link : links.first(standing_count)) {
    if (link.entry == nullptr) continue;
    if (parked.session.is_guest || pops() || !is_present(*link.entry, at)) take(*link.entry);
  }
}

void KeyWait::timed_out() {
  if (is_decided()) return table.services.answer(parked, decided_answer());
  std::vector<std::string_view> missing;
  each_missing(table.services.now(), [&](const Entry& entry) { missing.push_back(entry.key()); });
  if (pops()) {
    return table.services.fail(
        parked, no_item_error(ErrorCode::timed_out, missing.front(), parked.timeout));
  }
  table.services.fail(parked, absent_error(ErrorCode::timed_out, missing, parked.timeout));
}

std::string KeyWait::target() const {
  std::string text;
  std::size_t count = 0;
  each_missing(parked.received, [&](const Entry& entry) {  // what has expired since may be there
    if (++count > keys_told_of_max) return;
    text += (count == 1 ? "" : ", ") + quoted_text(entry.key());
  });
  if (count > keys_told_of_max) {
    text += " and " + std::to_string(count - keys_told_of_max) + " more";
  }
  return text;
}

}  // namespace muster::core
