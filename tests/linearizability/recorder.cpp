#include "linearizability/recorder.h"

#include <chrono>
#include <utility>

namespace muster::linear {
namespace {

/// Short, so that calls end without an answer while the network or the server stands still.
constexpr Duration call_timeout = std::chrono::milliseconds(20);

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What a read says of the key, where "nothing" is an answer, too.
std::optional<Error> found(Operation& operation, Result<std::string> value) {
  if (value) {
    operation.found = *std::move(value);
  } else if (value.error().code != ErrorCode::not_found) {
    return std::move(value).error();
  }
  return std::nullopt;
}

}  // namespace

Operation Recorder::plan() {
  Operation operation;
  operation.client = client_;
  switch (below(10)) {
    case 0:
    case 1: operation.kind = Kind::set; break;
    case 2:
    case 3: operation.kind = Kind::add; break;
    case 4:
    case 5: operation.kind = Kind::compare_set; break;
    case 6: operation.kind = Kind::take; break;
    case 7: operation.kind = Kind::remove; break;
    default: operation.kind = Kind::get; break;
  }
  if (operation.kind == Kind::add) operation.argument = std::to_string(1 + below(9));
  if (operation.kind == Kind::set) operation.argument = new_value();
  if (operation.kind == Kind::compare_set) {
    operation.argument = new_value();
    if (below(4) != 0) operation.expected = last_seen_;
  }
  return operation;
}

std::optional<Error> Recorder::ask(const std::string& key, Operation& operation) {
  switch (operation.kind) {
    case Kind::give_back: break;  // never planned: the checker adds it to takes without an answer
    case Kind::get: return found(operation, store_.get(key, Duration{0}));
    case Kind::take: return found(operation, store_.take(key, Duration{0}));
    case Kind::set: {
      const auto set = store_.set(key, operation.argument, {}, call_timeout);
      return set.has_value() ? std::optional<Error>() : set.error();
    }
    case Kind::add: {
      const auto sum = store_.add(key, std::stoll(operation.argument), call_timeout);
      if (!sum) return sum.error();
      operation.found = std::to_string(*sum);
      return std::nullopt;
    }
    case Kind::remove: {
      const auto removed = store_.remove(key, call_timeout);
      if (!removed.has_value()) return removed.error();
      operation.is_applied = *removed;
      return std::nullopt;
    }
    case Kind::compare_set: {
      std::optional<std::string_view> expected;
      if (operation.expected) expected = *operation.expected;
      const auto compared = store_.compare_set(key, expected, operation.argument, {}, call_timeout);
      if (!compared.has_value()) return compared.error();
      operation.is_applied = compared->applied;
      operation.found = compared->current;
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool Recorder::step() {
  const std::string key = keys_.next(random_());
  Operation operation = plan();
  operation.called_ns = now_ns();
  const std::optional<Error> error = ask(key, operation);
  operation.answered_ns = now_ns();
  operation.is_known = !error;
  if (error) ++unknown_count_;
  if (operation.found) last_seen_ = *operation.found;
  const bool changes_nothing = error && operation.kind == Kind::get;
  if (!changes_nothing) histories_[key].push_back(std::move(operation));
  return !error || (error->code != ErrorCode::server_restarted &&
                    error->code != ErrorCode::unavailable && error->code != ErrorCode::closed);
}

}  // namespace muster::linear
