#include <algorithm>

#include "oracle.h"

// R2: that an error names the right ranks, all of them, and says what each of them called.

namespace muster::sim {

using namespace std::chrono_literals;

namespace {

/// Nobody joins with a higher one.
constexpr int rank_max = 1000;

bool is_named_with_its_process(const Error& error, std::uint32_t rank) {
  return std::any_of(error.ranks.begin(), error.ranks.end(), [&](const RankReport& report) {
    return report.joined && report.rank == static_cast<int>(rank);
  });
}

bool is_named_as_absent(const Error& error, std::uint32_t rank) {
  return std::any_of(error.ranks.begin(), error.ranks.end(), [&](const RankReport& report) {
    return !report.joined && report.rank == static_cast<int>(rank);
  });
}

}  // namespace

/// All ranks at fault are in the ranges, by their order, and the first of them are told of in full.
void Oracle::check_ranges(const Error& error, std::size_t in_full_max) {
  std::vector<int> named;
  for (const RankRange range : error.rank_ranges) {
    const int least = named.empty() ? 0 : named.back() + 1;
    if (range.first < least || range.last < range.first || range.last > rank_max) {
      return problem("the ranges of an error are out of order");
    }
    for (int rank = range.first; rank <= range.last; ++rank) named.push_back(rank);
  }
  const std::size_t in_full = std::min(named.size(), in_full_max);
  bool is_same = error.ranks.size() == in_full;
  for (std::size_t index = 0; is_same && index < in_full; ++index) {
    is_same = error.ranks[index].rank == named[index];
  }
  if (!is_same) {
    problem(std::string(name_of(error.code)) + ": its ranges are not the ranks that it tells of");
  }
}

/// Members are told of with the ranks that they have in the epoch.
void Oracle::check_places(const Error& error, std::uint64_t incarnation, std::uint64_t client) {
  switch (error.code) {
    case ErrorCode::rank_lost:
    case ErrorCode::rank_left:
    case ErrorCode::cancelled:
    case ErrorCode::interrupted:
    case ErrorCode::collective_mismatch: break;
    default: return;
  }
  if (error.epoch == 0 || error.ranks.empty()) return;
  const auto members = groups.members({incarnation, error.epoch});
  for (const RankReport& report : error.ranks) {
    const auto member = members.find(static_cast<std::uint32_t>(report.rank));
    if (member == members.end()) continue;
    const Life* life = life_of(report.process.id, client);
    if (life != nullptr && life->client == member->second) continue;
    problem(std::string(name_of(error.code)) + " takes another process for rank " +
            std::to_string(report.rank));
  }
}

/// Whether `other` waited at the server when that decided that `late` has timed out: it had come
/// before, and its own time was not up.
bool Oracle::surely_waited(const Ask& other, const Ask& late) const {
  const Duration settled = 1s + 8 * terms_.delay_max;
  const Instant since = now() - settled - 5s;
  return other.client != late.client && other.incarnation == late.incarnation &&
         other.begun < now() - settled && now() < other.begun + shorter(other.timeout) &&
         !other.is_cancelled &&
         lives_[other.client].is_calm(std::min(since, other.begun - 5s), now()) &&
         lives_[late.client].is_calm(since, now()) &&
         server_is_calm(std::min(since, other.begun - 5s), now());
}

/// A time-out of those who wait for others says for whom, and for nobody who waits, too.
void Oracle::check_missing(const Ask& ask, const Error& error) {
  const bool joins = ask.operation == wire::operation<wire::Join>;
  const bool regroups = ask.operation == wire::operation<wire::Regroup>;
  if (!joins && !regroups && ask.operation != wire::operation<wire::Receive>) return;
  if (error.rank_ranges.empty()) {
    return problem(lives_[ask.client].name + " " + ask.what + ": timed_out names nobody");
  }
  // Decided at its own deadline just now; else the answer may be older than who waits.
  if (ask.operation == wire::operation<wire::Receive> || now() - ask.begun < shorter(ask.timeout))
    return;
  const auto members = groups.members({ask.incarnation, ask.epoch});
  const auto decider = members.find(static_cast<std::uint32_t>(error.decided_by_rank));
  if (regroups && (decider == members.end() || decider->second != ask.client)) return;
  for (const auto& [number, other] : pending_) {
    if (other.group != ask.group || !surely_waited(other, ask)) continue;
    if (other.operation == wire::operation<wire::Join> && is_named_as_absent(error, other.rank)) {
      problem(ask.what + ": timed_out calls rank " + std::to_string(other.rank) +
              " absent, which waits");
    }
    if (!regroups || other.operation != wire::operation<wire::Regroup> ||
        other.epoch != ask.epoch) {
      continue;
    }
    for (const auto& [rank, client] : members) {
      if (client != other.client || !is_named_with_its_process(error, rank)) continue;
      problem(ask.what + ": timed_out names rank " + std::to_string(rank) + ", which waits");
    }
  }
}

/// Ranks that called different things: who called what.
void Oracle::check_callers(const Ask& ask, const Error& error) {
  const auto wrong = [&](const std::string& what) {
    problem(lives_[ask.client].name + " " + ask.what + ": collective_mismatch " + what);
  };
  if (error.ranks.empty()) return wrong("names nobody");
  bool differ = error.ranks.size() == 1;  // the others are gone by now
  for (const RankReport& report : error.ranks) {
    const std::string rank = "rank " + std::to_string(report.rank);
    if (report.called.empty()) return wrong("does not say what " + rank + " called");
    differ |= report.called != error.ranks.front().called;
    const std::string called = report.called.substr(0, report.called.find(' '));
    const GroupModel::Number epoch{ask.incarnation, error.epoch};
    if (!groups.may_have_called(epoch, error.round, static_cast<std::uint32_t>(report.rank),
                                called)) {
      wrong("says that " + rank + " called " + called);
    }
  }
  if (!differ) wrong("names ranks that called the same");
}

}  // namespace muster::sim
