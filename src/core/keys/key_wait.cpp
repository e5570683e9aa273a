#include "core/keys/key_wait.h"

#include <algorithm>

#include "core/keys/table_state.h"
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
    detail += quoted(missing[index]);
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

KeyWait::KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count)
    : Wait(its_parked),
      table(its_table),
      links(&only_, 1),
      number(++its_table.last_wait),
      several_(key_count == 1 ? nullptr : std::make_unique<WaitLink[]>(key_count)) {
  if (several_ != nullptr) links = {several_.get(), key_count};
}

KeyWait::~KeyWait() {
  for (std::size_t index = 0; index < standing_count; ++index) {
    WaitLink& link = links[index];
    link.at_key.leave();
    table.drop_if_unused(*link.entry);
  }
  parked.session.account.quota.release(charged_bytes(links.size()));
}

void KeyWait::stand_at(Entry& entry) {
  WaitLink& link = links[standing_count++];
  link.wait = this;
  link.entry = &entry;
  Waiting& waiting = entry.block.extras()->waiting;
  const bool takes = parked.operation == wire::operation<wire::Take>;
  (takes ? waiting.takers : waiting.readers).append(link.at_key);
  if (!entry.has_value) ++missing_count;
}

void KeyWait::timed_out() {
  std::vector<std::string_view> missing;
  for (const WaitLink& link : links) {
    if (!link.entry->present_at(table.services.now())) missing.push_back(link.entry->key());
  }
  table.services.fail(parked, absent_error(ErrorCode::timed_out, missing, parked.timeout));
}

std::string KeyWait::target() const {
  const Instant now = parked.received;  // what has expired since is as good as there
  std::string text;
  std::size_t count = 0;
  for (const WaitLink& link : links) {
    if (link.entry == nullptr || link.entry->present_at(now)) continue;
    if (++count > keys_told_of_max) continue;
    text += (count == 1 ? "" : ", ") + quoted(link.entry->key());
  }
  if (count > keys_told_of_max) {
    text += " and " + std::to_string(count - keys_told_of_max) + " more";
  }
  return text;
}

}  // namespace muster::core
