#include "linearizability/checker.h"

#include <algorithm>
#include <limits>
#include <list>
#include <set>
#include <utility>

namespace muster::linear {
namespace {

using Value = std::optional<std::string>;

std::string text_of(const Value& value) { return value ? *value : "nothing"; }

struct State {
  Value value;
  /// What a take without an answer has removed, and the server may give back: until a newer value.
  Value taken;

  friend auto operator<=>(const State&, const State&) = default;
};

/// Lets the operation take place. False: it cannot have been answered so.
bool step(const Operation& operation, State& state) {
  const bool is_known = operation.is_known;
  Value& value = state.value;
  switch (operation.kind) {
    case Kind::get: return !is_known || operation.found == value;
    case Kind::set: value = operation.argument; break;
    case Kind::take: {
      const Value taken = std::exchange(value, std::nullopt);
      if (!is_known && taken) state.taken = taken;
      return !is_known || operation.found == taken;
    }
    case Kind::give_back:
      if (!value) value = std::exchange(state.taken, std::nullopt);
      return true;
    case Kind::remove: {
      const bool was_there = std::exchange(value, std::nullopt).has_value();
      return !is_known || operation.is_applied == was_there;
    }
    case Kind::add:
      value = std::to_string((value ? std::stoll(*value) : 0) + std::stoll(operation.argument));
      if (is_known && operation.found != value) return false;
      break;
    case Kind::compare_set: {
      const bool is_applied = operation.expected == value;
      const bool is_right = !is_known || (operation.is_applied == is_applied &&
                                          (is_applied || operation.found == value));
      if (!is_right || !is_applied) return is_right;
      value = operation.argument;
      break;
    }
  }
  state.taken.reset();
  return true;
}

/// With what the server may do by itself: give back what a take without an answer has removed.
History with_returns(const History& history) {
  History all = history;
  for (const Operation& operation : history) {
    if (operation.is_known || operation.kind != Kind::take) continue;
    all.push_back(operation);
    all.back().kind = Kind::give_back;
  }
  return all;
}

/// A call or an answer, in the order of time.
struct Moment {
  std::size_t operation = 0;
  bool is_call = true;
  std::int64_t at_ns = 0;
  std::list<Moment>::iterator answer;  ///< of a call that was answered
};

using Moments = std::list<Moment>;

class Search {
 public:
  explicit Search(const History& history);

  bool run();

 private:
  /// A call that took place, to be taken back if nothing comes of it.
  struct Taken {
    Moments::iterator call;
    Moments::iterator behind_call;
    Moments::iterator behind_answer;
    State before;
  };

  bool take(Moments::iterator call);
  Moments::iterator take_back();

  const History history_;
  Moments moments_;
  Moments aside_;  ///< of the calls that took place
  std::vector<bool> done_;
  std::size_t known_left_ = 0;
  State state_;
  std::vector<Taken> taken_;
  std::set<std::pair<std::vector<bool>, State>> seen_;
};

Search::Search(const History& history) : history_(with_returns(history)), done_(history_.size()) {
  for (std::size_t index = 0; index < history_.size(); ++index) {
    moments_.push_back({index, true, history_[index].called_ns, {}});
    if (!history_[index].is_known) continue;
    moments_.push_back({index, false, history_[index].answered_ns, {}});
    ++known_left_;
  }
  // Of one instant a call comes first: whoever was answered then may have been beside it.
  moments_.sort([](const Moment& a, const Moment& b) {
    return std::pair(a.at_ns, !a.is_call) < std::pair(b.at_ns, !b.is_call);
  });
  std::vector<Moments::iterator> calls(history_.size());
  for (auto moment = moments_.begin(); moment != moments_.end(); ++moment) {
    if (moment->is_call) {
      calls[moment->operation] = moment;
      moment->answer = moments_.end();
    } else {
      calls[moment->operation]->answer = moment;
    }
  }
}

/// False: it cannot have taken place next, or that was tried before.
bool Search::take(Moments::iterator call) {
  State state = state_;
  if (!step(history_[call->operation], state)) return false;
  done_[call->operation] = true;
  if (!seen_.emplace(done_, state).second) {
    done_[call->operation] = false;
    return false;
  }
  Taken taken{call, std::next(call), moments_.end(), std::exchange(state_, std::move(state))};
  aside_.splice(aside_.end(), moments_, call);
  if (history_[call->operation].is_known) {
    taken.behind_answer = std::next(call->answer);
    // The call's place is found again by what is behind it, also where that is its own answer.
    if (taken.behind_call == call->answer) taken.behind_call = taken.behind_answer;
    aside_.splice(aside_.end(), moments_, call->answer);
    --known_left_;
  }
  taken_.push_back(std::move(taken));
  return true;
}

/// returns  where to go on: behind the call that was taken back
Moments::iterator Search::take_back() {
  Taken taken = std::move(taken_.back());
  taken_.pop_back();
  if (history_[taken.call->operation].is_known) {
    moments_.splice(taken.behind_answer, aside_, taken.call->answer);
    if (taken.behind_call == taken.behind_answer) taken.behind_call = taken.call->answer;
    ++known_left_;
  }
  moments_.splice(taken.behind_call, aside_, taken.call);
  done_[taken.call->operation] = false;
  state_ = std::move(taken.before);
  return std::next(taken.call);
}

bool Search::run() {
  auto moment = moments_.begin();
  while (known_left_ > 0) {
    if (moment != moments_.end() && moment->is_call) {
      moment = take(moment) ? moments_.begin() : std::next(moment);
      continue;
    }
    // An answer, or the end: one of the calls before it must have taken place first.
    if (taken_.empty()) return false;
    moment = take_back();
  }
  return true;
}

}  // namespace

bool is_linearizable(const History& history) { return Search(history).run(); }

std::string to_string(const Operation& operation) {
  std::string call;
  switch (operation.kind) {
    case Kind::get: call = "get"; break;
    case Kind::set: call = "set " + operation.argument; break;
    case Kind::add: call = "add " + operation.argument; break;
    case Kind::compare_set:
      call = "compare_set " + text_of(operation.expected) + " to " + operation.argument;
      break;
    case Kind::take: call = "take"; break;
    case Kind::give_back: call = "give back"; break;
    case Kind::remove: call = "remove"; break;
  }
  const std::string answer = operation.is_known ? std::to_string(operation.answered_ns) +
                                                      ": found " + text_of(operation.found) +
                                                      (operation.is_applied ? ", applied" : "")
                                                : "no answer";
  return std::to_string(operation.called_ns) + " client " + std::to_string(operation.client) +
         ": " + call + " -> " + answer;
}

}  // namespace muster::linear
