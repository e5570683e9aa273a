#include <algorithm>

#include "group_model.h"
#include "oracle.h"

// The rounds of the model: what each has come to, with which values, and by whose deadline.

namespace muster::sim {
namespace {

bool names(const Error& error, std::uint32_t rank) {
  return std::any_of(error.rank_ranges.begin(), error.rank_ranges.end(), [&](RankRange range) {
    return static_cast<int>(rank) >= range.first && static_cast<int>(rank) <= range.last;
  });
}

std::string text_of(ErrorCode outcome) {
  return outcome == ErrorCode{} ? "done" : std::string(name_of(outcome));
}

}  // namespace

/// R3: one outcome, the same for all.
void GroupModel::outcome(const Place& place, Round& round, std::uint64_t number, ErrorCode code) {
  if (!round.outcome) round.outcome = code;
  if (round.was_broken && *round.outcome == ErrorCode{}) {
    problem(place, number, "it is done for one rank, another was told of a loss");
  }
  if (*round.outcome == code) return;
  problem(place, number,
          "one rank was told " + text_of(*round.outcome) + ", another " + text_of(code));
}

void GroupModel::round_done(const Place& place, std::uint64_t number, const wire::RoundReply& reply,
                            Instant asked) {
  Epoch& epoch = epochs_[place.epoch];
  Round& round = epoch.rounds[number];
  outcome(place, round, number, ErrorCode{});
  round.told.emplace(place.rank, oracle_.now());
  ++rounds_done_count;
  const auto own = round.called.find(place.rank);
  if (own == round.called.end()) return problem(place, number, "done, but never called");
  const RoundCall call = own->second.call;
  const bool from_one = call.collective == wire::Collective::broadcast ||
                        call.collective == wire::Collective::scatter;
  for (std::uint32_t rank = 0; rank < epoch.size; ++rank) {
    if (from_one && rank != call.root) continue;
    const auto other = round.called.find(rank);
    if (other == round.called.end()) {
      return problem(place, number, "done without rank " + std::to_string(rank));
    }
    if (other->second.call.collective != call.collective || other->second.call.root != call.root) {
      return problem(place, number, "done although ranks differ");
    }
  }
  check_values(place, epoch, round, number, {reply.values.begin(), reply.values.end()});
  check_unconfirmed(place, round, number, reply.unconfirmed, asked);
}

/// A barrier: who has passed it has confirmed that at once, and the last one waits no longer.
void GroupModel::check_unconfirmed(const Place& place, const Round& round, std::uint64_t number,
                                   const std::vector<RankRange>& unconfirmed, Instant asked) {
  const Duration longest = 4 * oracle_.terms().delay_max + std::chrono::milliseconds(100);
  const Instant then = oracle_.now() - longest;
  const std::uint64_t client = round.called.at(place.rank).client;
  if (place.rank == 0 && asked < then && round.called.size() == epochs_[place.epoch].size &&
      oracle_.life(client).is_calm(then - std::chrono::seconds(5), oracle_.now()) &&
      oracle_.server_is_calm(then - std::chrono::seconds(5), oracle_.now()) &&
      is_confirmed(place.epoch, number, client, then)) {
    problem(place, number, "all others have passed long ago");
  }
  for (const auto& [rank, told] : round.told) {
    const int signed_rank = static_cast<int>(rank);
    const bool is_named = std::any_of(unconfirmed.begin(), unconfirmed.end(), [&](RankRange each) {
      return signed_rank >= each.first && signed_rank <= each.last;
    });
    if (!is_named || told + longest >= oracle_.now()) continue;
    const Instant from = told - std::chrono::seconds(5);
    const auto is_calm = [&](std::uint32_t each) {
      return oracle_.life(round.called.at(each).client).is_calm(from, oracle_.now());
    };
    if (!is_calm(rank) || !is_calm(place.rank)) continue;
    if (!oracle_.server_is_calm(from, oracle_.now())) continue;
    problem(place, number, "rank " + std::to_string(rank) + " has passed and not confirmed");
  }
}

bool GroupModel::is_confirmed(const Number& number, std::uint64_t wanted, std::uint64_t client,
                              Instant when) const {
  const auto epoch = epochs_.find(number);
  if (epoch == epochs_.end()) return false;
  const auto found = epoch->second.rounds.find(wanted);
  if (found == epoch->second.rounds.end()) return false;
  for (const auto& [rank, called] : found->second.called) {
    if (called.call.collective != wire::Collective::barrier) return false;
    if (called.client == client) continue;
    const auto told = found->second.told.find(rank);
    if (told == found->second.told.end() || told->second >= when) return false;
    const Instant settled = when - std::chrono::seconds(5);
    if (!oracle_.life(called.client).is_calm(settled, oracle_.now())) return false;
  }
  return true;
}

bool GroupModel::gave(const Called& called, std::size_t index, const std::string& value) const {
  const auto holds = [&](const std::vector<std::string>& values) {
    return index < values.size() && values[index] == value;
  };
  return holds(called.call.values) ||
         std::any_of(called.older_values.begin(), called.older_values.end(), holds);
}

void GroupModel::check_values(const Place& place, const Epoch& epoch, Round& round,
                              std::uint64_t number, const std::vector<std::string>& values) {
  const RoundCall& call = round.called.at(place.rank).call;
  const bool is_root = place.rank == call.root;
  const auto wrong = [&] { problem(place, number, "it was given wrong values"); };
  switch (call.collective) {
    case wire::Collective::barrier:
      if (!values.empty()) wrong();
      return;
    case wire::Collective::broadcast:
    case wire::Collective::scatter: {
      if (is_root) return values.empty() ? void() : wrong();
      const std::size_t index = call.collective == wire::Collective::scatter ? place.rank : 0;
      if (values.size() != 1 || !gave(round.called.at(call.root), index, values[0])) wrong();
      return;
    }
    case wire::Collective::gather:
      if (!is_root) return values.empty() ? void() : wrong();
      break;
    case wire::Collective::all_gather: break;
  }
  if (values.size() != epoch.size) return wrong();
  for (std::uint32_t rank = 0; rank < epoch.size; ++rank) {
    if (!gave(round.called.at(rank), 0, values[rank])) return wrong();
  }
  for (const auto& [rank, others] : round.values) {
    if (others != values) problem(place, number, "ranks were given different values");
  }
  round.values[place.rank] = values;
}

void GroupModel::round_failed(const Place& place, std::uint64_t number, const Error& error) {
  Round& round = epochs_[place.epoch].rounds[number];
  round.told.emplace(place.rank, oracle_.now());
  switch (error.code) {
    case ErrorCode::rank_lost: return round_broken(place, round, number, error);
    // Of the epoch, or of this rank alone.
    case ErrorCode::fenced:
    case ErrorCode::stale_epoch:
    case ErrorCode::collective_mismatch:
    case ErrorCode::expired: return;
    case ErrorCode::timed_out: check_timeout(place, round, number, error); break;
    default: break;
  }
  outcome(place, round, number, error.code);
}

/// R4: a loss ends what was not decided, and nothing else; only who is itself lost is told less.
void GroupModel::round_broken(const Place& place, Round& round, std::uint64_t number,
                              const Error& error) {
  if (names(error, place.rank)) return;
  round.was_broken = true;
  if (round.outcome != ErrorCode{}) return;
  problem(place, number, "it is told of a loss, the round was done for another rank");
}

/// Whether the server has had the call by then.
bool GroupModel::has_surely_come(const Called& called, Instant when) const {
  const Instant latest = called.begun + std::chrono::seconds(1) + 4 * oracle_.terms().delay_max;
  return called.timeout != base::timeout_max && latest < when &&
         oracle_.life(called.client).is_calm(called.begun - std::chrono::seconds(5), latest) &&
         oracle_.server_is_calm(called.begun - std::chrono::seconds(5), latest);
}

/// R3: the earliest deadline decides, and says who is missing.
void GroupModel::check_timeout(const Place& place, Round& round, std::uint64_t number,
                               const Error& error) {
  if (error.decided_by_rank < 0) return problem(place, number, "timed_out, but by whom?");
  const auto decider = round.called.find(static_cast<std::uint32_t>(error.decided_by_rank));
  if (decider == round.called.end()) {
    return problem(place, number, "timed_out by a rank that has not called");
  }
  const Called& called = decider->second;
  const std::uint32_t size = epochs_[place.epoch].size;
  const wire::Collective collective = called.call.collective;
  const bool from_one =
      collective == wire::Collective::broadcast || collective == wire::Collective::scatter;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (from_one && rank != called.call.root) continue;  // the source waits for nobody
    if (round.called.count(rank) == 0 && !names(error, rank)) {
      problem(place, number, "timed_out does not name rank " + std::to_string(rank));
    }
  }
  if (error.rank_ranges.empty()) problem(place, number, "timed_out names nobody");
  const Instant due = called.begun + oracle_.shorter(called.timeout);
  for (const auto& [rank, other] : round.called) {
    if (!names(error, rank) || oracle_.terms().has_small_limits || !has_surely_come(other, due))
      continue;
    problem(place, number, "timed_out names rank " + std::to_string(rank) + ", which had come");
  }
  if (error.decided_by_timeout > called.timeout) {
    problem(place, number, "timed_out names a timeout that nobody gave");
  }
  if (round.decided_by != -1 && round.decided_by != error.decided_by_rank) {
    problem(place, number, "ranks were told of different deadlines");
  }
  round.decided_by = error.decided_by_rank;
  if (oracle_.now() < called.begun + oracle_.shorter(called.timeout)) {
    problem(place, number,
            "timed_out before the deadline of rank " + std::to_string(error.decided_by_rank));
  }
}

bool GroupModel::is_overdue(const Number& epoch, std::uint64_t number) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  const auto known = found->second.rounds.find(number);
  if (known == found->second.rounds.end()) return false;
  const Round& round = known->second;
  if (round.outcome == ErrorCode{} || may_be_done(epoch, number)) return false;
  for (const auto& [rank, called] : round.called) {
    const Instant latest = called.begun + oracle_.longer(called.timeout) +
                           oracle_.terms().limits.slack + 2 * oracle_.terms().delay_max;
    const bool has_arrived =
        oracle_.life(called.client).is_calm(called.begun, called.begun + std::chrono::seconds(1));
    if (has_arrived && latest < oracle_.now() &&
        oracle_.server_is_calm(called.begun, oracle_.now())) {
      return true;
    }
  }
  return false;
}

}  // namespace muster::sim
