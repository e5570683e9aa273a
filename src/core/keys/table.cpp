#include "core/keys/table.h"

#include <array>
#include <charconv>

#include "core/keys/taken.h"
#include "core/keys/value_answers.h"
#include "core/session/failure.h"

// A request's life: its arguments are checked -> everything that can be refused is prepared ->
// the key changes -> the caller is answered -> those who waited for the key are. A get, take or
// wait whose keys are not all there parks instead, see core/keys/key_wait.h.

namespace muster::core {

std::optional<Error> Table::check_key(std::string_view key) const {
  if (key.empty()) {
    return failure(ErrorCode::invalid_argument, "a key is empty; it needs at least one byte");
  }
  const std::uint32_t limit = options_.limits.key_bytes_max;
  if (key.size() <= limit) return std::nullopt;
  return too_large("the key " + quoted_text(key), key.size(), "bytes", limit, "key_bytes_max");
}

std::optional<Error> Table::check_value(std::string_view key, std::uint64_t value_bytes) const {
  const std::uint32_t limit = options_.limits.value_bytes_max;
  if (value_bytes <= limit) return std::nullopt;
  return too_large("the value of " + quoted_text(key), value_bytes, "bytes", limit,
                   "value_bytes_max");
}

std::optional<Error> Table::check_ttl(const wire::Ttl& ttl) const {
  if (!ttl || *ttl > Duration::zero()) return std::nullopt;
  return failure(ErrorCode::invalid_argument,
                 "the TTL is " + in_seconds(*ttl) + "; it must be above zero, or absent");
}

Instant Table::deadline_of(const wire::Ttl& ttl) const {
  if (!ttl) return base::far_future;
  return services_.now() + std::min(*ttl, wire::duration_max);
}

void Table::apply_terms(Entry& entry, const Terms& terms, Session& session) {
  if (terms.deadline) state_.deadlines.set(entry, *terms.deadline);
  if (terms.binding == Terms::Binding::keep) return;
  state_.bind(entry, terms.binding == Terms::Binding::caller ? session.keys.bound.get() : nullptr);
  state_.drop_extras_if_unused(entry);
}

void Table::write(const RequestContext& context, const Spot& spot, std::string_view first,
                  std::string_view second, const Terms& terms, Answer&& answer) {
  const bool binds = terms.binding == Terms::Binding::caller;
  Account& payer = context.session.account;
  if (!binds && state_.overwrite(payer, spot, first, second)) {
    apply_terms(*spot.entry, terms, context.session);
    return services_.answer(context, std::move(answer));
  }
  const std::optional<NewValue> value = state_.make_value(payer, spot, first, second);
  if (binds && context.session.keys.bound == nullptr) {
    context.session.keys.bound = std::make_shared<BoundKeys>();
  }
  const auto binding = binds ? TableState::Binding::room : TableState::Binding::none;
  Draft draft(state_);
  if (!value || !state_.prepare(draft, payer, spot, *value, binding)) {
    const std::uint64_t refused_bytes =
        spot.key.size() + first.size() + second.size() + entry_bytes;
    return services_.fail(context, memory_exhausted(payer.quota, refused_bytes));
  }
  Entry* const entry = &draft.entry();
  const bool appeared = state_.put(draft);
  apply_terms(*entry, terms, context.session);
  services_.answer(context, std::move(answer));
  if (appeared) state_.serving.serve({&entry, 1});
}

void Table::set(const RequestContext& context, const wire::Set& request) {
  if (auto error = check_key(request.key)) return services_.fail(context, std::move(*error));
  if (auto error = check_value(request.key, request.value.size())) {
    return services_.fail(context, std::move(*error));
  }
  if (auto error = check_ttl(request.ttl)) return services_.fail(context, std::move(*error));
  const Spot spot = state_.look(request.key);
  if (request.only_if_absent && spot.has_value()) {
    return services_.answer(context, answer_of(wire::AppliedReply{}));
  }
  Terms terms;
  terms.deadline = deadline_of(request.ttl);
  terms.binding = request.bind_to_session ? Terms::Binding::caller : Terms::Binding::clear;
  write(context, spot, request.value, {}, terms, answer_of(wire::AppliedReply{true, std::nullopt}));
}

void Table::get(const RequestContext& context, const wire::Get& request) {
  const std::string_view key = request.key;
  if (auto error = check_key(key)) return services_.fail(context, std::move(*error));
  const Entry* entry = state_.find(key);
  if (entry == nullptr) return park(context, {key});
  services_.answer(context, value_answer(*entry));
}

void Table::take(const RequestContext& context, const wire::Take& request) {
  const std::string_view key = request.key;
  if (auto error = check_key(key)) return services_.fail(context, std::move(*error));
  Entry* entry = state_.find(key);
  if (entry == nullptr) return park(context, {key});
  // Which is kept, so has the value itself.
  services_.answer(context, take_answer(state_, context.session.account, *entry));
  state_.remove(*entry);
}

void Table::add(const RequestContext& context, const wire::Add& request) {
  if (auto error = check_key(request.key)) return services_.fail(context, std::move(*error));
  const Spot spot = state_.look(request.key);
  std::int64_t number = 0;
  if (spot.has_value()) {
    const std::string_view text = state_.whole_value(*spot.entry);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      return services_.fail(context, failure(ErrorCode::not_a_number,
                                             "the value of " + quoted_text(request.key) + " is " +
                                                 quoted_text(text) + ", no decimal 64-bit number"));
    }
  }
  if (__builtin_add_overflow(number, request.delta, &number)) {
    return services_.fail(context,
                          failure(ErrorCode::out_of_range,
                                  quoted_text(request.key) + " would leave the range of 64 bits"));
  }
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  write(context, spot, text, {}, Terms{}, answer_of(wire::NumberReply{number}));
}

void Table::compare_set(const RequestContext& context, const wire::CompareSet& request) {
  std::optional<Error> error = check_key(request.key);
  if (!error) error = check_value(request.key, request.desired.size());
  if (!error) error = check_ttl(request.ttl);
  if (error) return services_.fail(context, std::move(*error));
  const Spot spot = state_.look(request.key);
  const Entry* present = spot.has_value() ? spot.entry : nullptr;
  bool equal = present == nullptr && !request.expected;
  if (present != nullptr && request.expected) {
    equal = request.expected->size() == present->value().size() &&
            *request.expected == state_.whole_value(*present);
  }
  if (!equal) {
    return services_.answer(context, not_applied_answer(present));
  }
  // The request has no say about a session, so the key stays bound to the one it has.
  Terms terms;
  terms.deadline = deadline_of(request.ttl);
  write(context, spot, request.desired, {}, terms,
        answer_of(wire::AppliedReply{true, std::nullopt}));
}

void Table::append(const RequestContext& context, const wire::Append& request) {
  if (auto error = check_key(request.key)) return services_.fail(context, std::move(*error));
  const Spot spot = state_.look(request.key);
  const std::string_view old = spot.has_value() ? spot.entry->value() : std::string_view();
  const std::uint64_t bytes = old.size() + request.suffix.size();
  if (auto error = check_value(request.key, bytes))
    return services_.fail(context, std::move(*error));
  write(context, spot, old, request.suffix, Terms{},
        answer_of(wire::NumberReply{static_cast<std::int64_t>(bytes)}));
}

void Table::touch(const RequestContext& context, const wire::Touch& request) {
  std::optional<Error> error = check_key(request.key);
  if (!error) error = check_ttl(request.ttl);
  if (error) return services_.fail(context, std::move(*error));
  Entry* entry = state_.find(request.key);
  if (entry == nullptr) {
    return services_.fail(context,
                          failure(ErrorCode::not_found, quoted_text(request.key) + " is absent"));
  }
  Terms terms;
  terms.deadline = deadline_of(request.ttl);
  apply_terms(*entry, terms, context.session);
  services_.answer(context, Answer{});
}

void Table::session_ended(Session& session) {
  if (session.keys.offer != nullptr) end_offer(session);
  if (session.keys.bound != nullptr) state_.let_go(std::move(session.keys.bound));
}

int Table::remove_dropped(int count_max) {
  int count = 0;
  for (; count < count_max && state_.entries.end() > 0; ++count) {
    Entry& last = state_.entries[state_.entries.end() - 1];
    const bool has_value = last.has_value;
    state_.queues.drop(last);  // with which it may go
    if (has_value) state_.remove(last);
  }
  return count;
}

int Table::fired(Timer& timer, int work_max) { return timer.owner<TableState>().expire(work_max); }

}  // namespace muster::core
