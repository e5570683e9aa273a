#include <algorithm>
#include <array>

#include "core/keys/table.h"
#include "core/keys/value_answers.h"
#include "core/session/failure.h"
#include "core/session/page.h"
#include "wire/writer.h"

// The table's requests on several keys.

namespace muster::core {

std::optional<Error> Table::check_key_count(std::size_t count, std::uint32_t limit) const {
  if (count <= limit) return std::nullopt;
  return too_large("the request", count, "keys", limit, "keys_per_operation_max");
}

std::optional<Error> Table::check_keys(const Keys& keys) const {
  const wire::ServerLimits& limits = options_.limits;
  if (auto error = check_key_count(keys.size(), limits.keys_per_operation_max)) return error;
  for (const std::string_view key : keys) {
    if (key.empty() || key.size() > limits.key_bytes_max) return check_key(key);
  }
  return std::nullopt;
}

void Table::remove(const RequestContext& context, const wire::Remove& request) {
  services_.effects().spend(request.keys.size());
  if (auto error = check_keys(request.keys)) return services_.fail(context, std::move(*error));
  std::int64_t removed_count = 0;
  for (const std::string_view key : request.keys) {
    Entry* entry = state_.find(key);
    if (entry == nullptr) continue;
    state_.remove(*entry);
    ++removed_count;
  }
  services_.answer(context, answer_of(wire::NumberReply{removed_count}));
}

void Table::exists(const RequestContext& context, const wire::Exists& request) {
  services_.effects().spend(request.keys.size());
  if (auto error = check_keys(request.keys)) return services_.fail(context, std::move(*error));
  wire::PresenceReply reply;
  for (const std::string_view key : request.keys) {
    reply.present.push_back(state_.find(key) != nullptr);
  }
  services_.answer(context, answer_of(reply));
}

void Table::wait(const RequestContext& context, const wire::Wait& request) {
  services_.effects().spend(request.keys.size());
  if (auto error = check_keys(request.keys)) return services_.fail(context, std::move(*error));
  for (const std::string_view key : request.keys) {
    if (state_.find(key) == nullptr) return park(context, request.keys);
  }
  services_.answer(context, Answer{});
}

/// When a key comes or goes, all waits for several keys that stand there are looked at at once.
std::optional<Error> Table::check_places(const Session& session, std::size_t count) const {
  const std::uint64_t limit = options_.name_spaces.waits_for_several_max;
  const std::uint64_t taken = state_.serving.places_of_several + count;
  const std::uint64_t own = session.keys.places_of_several + count;
  if (taken <= limit && own <= limit - taken) return std::nullopt;
  const SharedLimit shared{limit};
  const std::uint64_t of_unit = session.account.places_of_several + count;
  const std::size_t units_count = state_.accounts.size();
  const bool is_below_share = units_count > 1 && of_unit <= shared.share(units_count);
  if (is_below_share && taken <= shared.with_reserve()) return std::nullopt;
  return exhausted(services_.counted().tallies, Limit::waits_for_several,
                   "waits_for_several_max: waits for several keys stand at so many keys already",
                   state_.serving.places_of_several, limit);
}

void Table::park(const RequestContext& context, const Keys& keys) {
  if (context.timeout <= Duration::zero()) {
    Keys missing;
    for (const std::string_view key : keys) {
      if (state_.find(key) == nullptr) missing.push_back(key);
    }
    return services_.fail(context, absent_error(ErrorCode::not_found, missing, context.timeout));
  }
  if (keys.size() > 1) {
    if (auto error = check_places(context.session, keys.size())) {
      return services_.fail(context, std::move(*error));
    }
  }
  Parked* parked = services_.park(context);
  if (parked == nullptr) return;
  const std::uint64_t bytes = KeyWait::charged_bytes(keys.size());
  Account& payer = context.session.account;
  // There is room for the queue, too, in which it may be the first.
  if (!payer.quota.has_reserve(bytes + readers_bytes) || !payer.quota.charge_reserve(bytes)) {
    return services_.fail(*parked, memory_exhausted(payer.quota, bytes));
  }
  auto owned = std::make_unique<KeyWait>(state_, *parked, keys.size());
  KeyWait& wait = *owned;
  parked->wait = std::move(owned);
  for (const std::string_view key : keys) {
    Entry* entry = state_.make_place_to_wait(payer, key);
    if (entry == nullptr) {
      const std::uint64_t refused_bytes = key.size() + entry_bytes + extras_bytes;
      return services_.fail(*parked, memory_exhausted(payer.quota, refused_bytes));
    }
    wait.stand_at(*entry);
  }
}

void Table::look_for(std::span<const std::string_view> keys, Values& values) {
  constexpr std::size_t batch = 32;          // of keys whose memory is asked for at a time
  constexpr std::size_t cached_keys = 8192;  // so many are in the processor's cache in any case
  const KeyIndex& index = state_.index;
  std::array<std::uint32_t, batch> hashes;
  for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), batch))) {
    const std::size_t count = std::min(keys.size(), batch);
    for (std::size_t i = 0; i < count; ++i) hashes[i] = state_.hash_of(keys[i]);
    if (index.size() > cached_keys) {
      for (std::size_t i = 0; i < count; ++i) index.prefetch_bucket(hashes[i]);
      for (std::size_t i = 0; i < count; ++i) index.prefetch_entry(hashes[i]);
      for (std::size_t i = 0; i < count; ++i) index.prefetch_key(hashes[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Spot spot = state_.look(keys[i], hashes[i]);
      values.push_back(spot.has_value() ? std::optional(spot.entry->value()) : std::nullopt);
    }
  }
}

std::uint64_t Table::bytes_of(const Keys& keys) const {
  std::uint64_t bytes = 4;
  for (const std::string_view key : keys) {
    const Entry* const entry = state_.index.find(key, state_.hash_of(key));
    const bool is_there = entry != nullptr && is_present(*entry, services_.now());
    bytes += is_there ? 5 + entry->value().size() : 1;
  }
  return bytes;
}

void Table::multi_get(const RequestContext& context, const wire::MultiGet& request) {
  services_.effects().spend(request.keys.size());
  if (auto error = check_keys(request.keys)) return services_.fail(context, std::move(*error));
  Values values;
  values.reserve(request.keys.size());
  look_for(request.keys, values);
  std::uint64_t bytes = 0;
  for (const auto& value : values) bytes += value ? value->size() : 0;
  const std::uint64_t limit = options_.limits.round_bytes_max;
  if (bytes > limit) {
    return services_.fail(
        context, too_large("the sum of the values", bytes, "bytes", limit, "round_bytes_max"));
  }
  // The one read that copies: the copy is charged until it has left.
  EffectList& effects = services_.effects();
  Quota& quota = services_.memory().replies;
  const bool are_whole = effects.long_copies().empty() || bytes < shared_value_bytes_min;
  const bool at_once = are_whole && effects.may_copy(bytes);
  effects.spend_on_copying(at_once ? bytes : 0);
  Answer answer = at_once ? values_answer(quota, values) : values_answer_later(quota, request.keys);
  if (answer.tail == nullptr) {
    return services_.fail(context, memory_exhausted(quota, bytes));
  }
  services_.answer(context, std::move(answer));
}

Answer Table::values_answer_later(Quota& quota, const Keys& keys) {
  std::vector<CopyPart> parts(keys.size());
  std::uint64_t copied_bytes = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CopyPart& part = parts[i];
    wire::Writer writer(part.text);
    if (i == 0) writer.u32(static_cast<std::uint32_t>(keys.size()));
    const Entry* const entry = state_.find(keys[i]);
    writer.u8(entry != nullptr ? 1 : 0);
    if (entry == nullptr) continue;
    writer.u32(static_cast<std::uint32_t>(entry->value().size()));
    if (entry->block.is_shared()) {
      part.value = entry->block.shared();
    } else {
      writer.raw(entry->value());
      copied_bytes += entry->value().size();
    }
  }
  EffectList& effects = services_.effects();
  effects.spend_on_copying(copied_bytes);
  Answer answer;
  answer.owns_tail = true;
  answer.tail = effects.long_copies().begin(quota, std::move(parts), Charging::reserve);
  return answer;
}

void Table::multi_set(const RequestContext& context, const wire::MultiSet& request) {
  services_.effects().spend(request.entries.size());
  const std::uint32_t keys_max =
      context.session.is_guest ? options_.guest_keys_max : options_.limits.keys_per_operation_max;
  std::optional<Error> error = check_key_count(request.entries.size(), keys_max);
  if (!error) error = check_ttl(request.ttl);
  for (auto pair = request.entries.begin(); !error && pair != request.entries.end(); ++pair) {
    error = check_key(pair->key);
    if (!error) error = check_value(pair->key, pair->value.size());
  }
  if (error) return services_.fail(context, std::move(*error));

  Terms terms;
  terms.deadline = deadline_of(request.ttl);
  terms.binding = Terms::Binding::clear;
  Account& payer = context.session.account;
  std::vector<Draft> drafts;
  drafts.reserve(request.entries.size());
  for (const wire::KeyValue& pair : request.entries) {
    Draft& draft = drafts.emplace_back(state_);
    const std::optional<NewValue> value = state_.make_value(payer, pair.value);
    if (!value ||
        !state_.prepare(draft, payer, state_.look(pair.key), *value, TableState::Binding::none)) {
      const std::uint64_t refused_bytes = pair.key.size() + pair.value.size() + entry_bytes;
      return services_.fail(context, memory_exhausted(payer.quota, refused_bytes));
    }
  }
  std::vector<Entry*> appeared;
  appeared.reserve(drafts.size());
  for (Draft& draft : drafts) {
    Entry& entry = draft.entry();
    if (state_.put(draft)) appeared.push_back(&entry);
    apply_terms(entry, terms, context.session);
  }
  services_.answer(context, answer_of(wire::EmptyReply{}));
  state_.serving.serve(appeared);
}

/// A cursor is the number of the slot that comes next.
void Table::list_keys(const RequestContext& context, const wire::List& request) {
  const std::uint32_t slots_max = options_.list_slots_per_page;
  const std::uint32_t count_max =
      request.count_max == 0 ? slots_max : std::min(request.count_max, slots_max);
  const std::uint32_t end = state_.entries.end();
  auto slot = static_cast<std::uint32_t>(std::min<std::uint64_t>(request.cursor, end));
  wire::ListReply reply;
  std::uint64_t bytes = 0;
  for (std::uint32_t looked_at = 0; slot < end && looked_at < slots_max; ++looked_at) {
    if (reply.entries.size() == count_max || bytes >= page_bytes_max) break;
    const Entry* entry = state_.entries.at(slot);
    slot = state_.entries.after(slot);
    if (entry == nullptr || !is_present(*entry, services_.now())) continue;
    if (!entry->key().starts_with(request.prefix)) continue;
    wire::ListEntry& listed = reply.entries.emplace_back();
    listed.name = entry->key();
    listed.value_bytes = entry->value().size();
    const KeyExtras* const extras = entry->block.extras();
    listed.bound = extras != nullptr && extras->bound != nullptr;
    if (entry->deadline != base::far_future) listed.ttl = entry->deadline - services_.now();
    bytes += encoded_bytes(listed);
  }
  if (slot < end) reply.cursor = slot;
  services_.effects().spend(reply.entries.size());
  services_.answer(context, answer_of(reply));
}

std::uint32_t Table::count_prefixes(std::uint32_t slot, std::uint32_t slots_max,
                                    PrefixCounts& counts) {
  const std::uint32_t end = state_.entries.end();
  for (std::uint32_t looked_at = 0; slot < end && looked_at < slots_max; ++looked_at) {
    const Entry* const entry = state_.entries.at(slot);
    slot = state_.entries.after(slot);
    if (entry == nullptr || !is_present(*entry, services_.now())) continue;
    counts.add(entry->key(), entry->value().size());
  }
  return slot < end ? slot : 0;
}

}  // namespace muster::core
