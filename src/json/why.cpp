#include "json/why.h"

#include <algorithm>

#include "json/texts.h"
#include "muster/log.h"

// What a group's report says, in lines for people: first the processes that others wait for.

namespace muster::json {
namespace {

/// Of many ranks only the first are described. The text has the numbers of all, --json everything.
constexpr std::size_t told_in_full_max = 16;

const MemberInfo* member_at(const GroupReport& report, int rank) {
  for (const MemberInfo& member : report.members) {
    if (member.rank == rank) return &member;
  }
  return nullptr;
}

std::string state_text(const MemberInfo& member) {
  const std::string silent = "silent for " + text_of(member.silence);
  switch (member.state) {
    case MemberState::away: return "connection closed, " + silent;
    case MemberState::lost: return "lost, it was " + silent;
    case MemberState::left: return "left";
    default: return silent;
  }
}

bool is_gone(const MemberInfo& member) {
  return member.state == MemberState::lost || member.state == MemberState::left;
}

/// `rest` follows what is told of the process.
std::string member_text(const MemberInfo& member, const std::string& rest = "") {
  return "rank " + std::to_string(member.rank) + " (" + text_of(member.process) + ", " +
         state_text(member) + rest + ")";
}

bool holds(const std::vector<RankRange>& ranks, int rank) {
  return std::any_of(ranks.begin(), ranks.end(), [rank](const RankRange range) {
    return range.first <= rank && rank <= range.last;
  });
}

/// Of a member that can take no part in rounds.
std::string handle_text(const GroupReport& report, const MemberInfo& member) {
  if (!holds(report.unheld, member.rank)) return "";
  return "; its process holds no handle of this group";
}

/// The rank with its process, as far as it is known.
std::string rank_text(const GroupReport& report, int rank) {
  const bool forms = report.epoch == 0;
  const std::string nobody = forms ? "nobody is there as it" : "no candidate that fits is there";
  const MemberInfo* const member = member_at(report, rank);
  if (member == nullptr) return "rank " + std::to_string(rank) + " (" + nobody + ")";
  return member_text(*member, is_gone(*member) ? "; " + nobody : handle_text(report, *member));
}

/// `introduction`, and a line for each of the first of them.
void add_first(std::vector<std::string>& lines, const std::string& introduction,
               const std::vector<std::string>& texts, std::size_t count) {
  if (count == 0) return;
  lines.push_back(introduction + ":");
  for (const std::string& text : texts) lines.push_back("      " + text);
  if (count > texts.size()) {
    lines.push_back("      and " + std::to_string(count - texts.size()) + " others");
  }
}

void add_ranks(std::vector<std::string>& lines, const GroupReport& report,
               const std::string& introduction, const std::vector<RankRange>& ranks) {
  std::vector<std::string> texts;
  std::size_t count = 0;
  for (const RankRange range : ranks) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (++count <= told_in_full_max) texts.push_back(rank_text(report, rank));
    }
  }
  add_first(lines, introduction + " " + text_of(ranks), texts, count);
}

/// The members in that state, but for those that were told of as missing.
void add_members(std::vector<std::string>& lines, const GroupReport& report, MemberState state,
                 const std::string& introduction) {
  const auto is_missing = [&](const MemberInfo& member) {
    return (report.round && holds(report.round->missing, member.rank)) ||
           (report.confirming && holds(report.confirming->missing, member.rank)) ||
           (report.regroup && holds(report.regroup->missing, member.rank));
  };
  std::vector<std::string> texts;
  std::size_t count = 0;
  for (const MemberInfo& member : report.members) {
    if (member.state != state || is_missing(member)) continue;
    if (++count > told_in_full_max) continue;
    texts.push_back(member_text(member, handle_text(report, member)));
  }
  add_first(lines, introduction, texts, count);
}

/// What a candidate waits for.
std::string need_of(const GroupReport& report, const WaitingCandidate& candidate) {
  if (candidate.waits_for_holder) {
    return "the holder of rank " + std::to_string(candidate.member.rank) +
           " is silent, but not lost yet";
  }
  if (!report.regroup) return "the members must call regroup";
  const int size = report.regroup->new_size;
  if (report.regroup->everyone) {
    return candidate.standby ? "the regroup takes everyone in, and waits for its members"
                             : "it asks for a rank of a size that the regroup may not have";
  }
  if (size == 0) return "the regroup is without a size, and takes no candidates in";
  const bool fits = candidate.standby || candidate.world_size == size;
  return fits ? "the regroup waits for others" : "it asks for another size than the regroup";
}

void add_candidates(std::vector<std::string>& lines, const GroupReport& report) {
  std::vector<std::string> texts;
  for (const WaitingCandidate& candidate : report.candidates) {
    if (texts.size() == told_in_full_max) break;
    texts.push_back(member_text(candidate.member) + " of " + std::to_string(candidate.world_size) +
                    (candidate.standby ? ", standby" : "") + ", for " + text_of(candidate.age) +
                    " (" + text_of(candidate.left) + " left): " + need_of(report, candidate));
  }
  add_first(lines, "  waiting to join", texts, report.candidates.size());
}

/// Whether somebody is held up, or all who wait are idle.
void add_verdict(std::vector<std::string>& lines, const GroupReport& report, Duration hung_for) {
  const auto held_up = held_up_for(report);
  if (held_up && *held_up >= hung_for) {
    lines.push_back("  it hangs: somebody is held up for " + text_of(*held_up));
  } else if (held_up) {
    lines.push_back("  somebody is held up for " + text_of(*held_up) + "; it hangs from " +
                    text_of(hung_for) + " on");
  } else if (has_waiters(report)) {
    lines.emplace_back("  nobody is held up: who waits is idle");
  }
}

void explain_forming(std::vector<std::string>& lines, const GroupReport& report,
                     Duration hung_for) {
  lines.push_back("group " + quoted_name(report.name) + ": forms; " +
                  std::to_string(report.members.size()) + " of " +
                  std::to_string(report.world_size) + " ranks are there, the first for " +
                  text_of(report.age));
  add_verdict(lines, report, hung_for);
  add_ranks(lines, report, "  waits for", report.missing);
  std::vector<std::string> texts;
  for (const MemberInfo& member : report.members) {
    if (texts.size() < told_in_full_max) texts.push_back(member_text(member));
  }
  add_first(lines, "  waiting", texts, report.members.size());
  add_candidates(lines, report);
}

/// Those that called the same thing, and as which rank; told of in full where they are few.
struct Callers {
  std::string called;
  std::vector<RankRange> ranks;
  std::vector<std::string> texts;
};

std::vector<Callers> callers_of(const Error& error) {
  std::vector<Callers> all;
  for (const RankReport& rank : error.ranks) {
    if (rank.called.empty()) continue;
    auto callers = std::find_if(all.begin(), all.end(),
                                [&](const Callers& other) { return other.called == rank.called; });
    if (callers == all.end()) callers = all.insert(all.end(), Callers{rank.called, {}, {}});
    auto& ranks = callers->ranks;
    if (!ranks.empty() && ranks.back().last + 1 == rank.rank) {
      ranks.back().last = rank.rank;
    } else {
      ranks.push_back({rank.rank, rank.rank});
    }
    callers->texts.push_back("rank " + std::to_string(rank.rank) + " (" + text_of(rank.process) +
                             ")");
  }
  std::stable_sort(all.begin(), all.end(), [](const Callers& left, const Callers& right) {
    return left.texts.size() < right.texts.size();
  });
  return all;
}

/// Who called what, the odd ones first, when it was not the same everywhere.
void add_calls(std::vector<std::string>& lines, const Error& error) {
  constexpr std::size_t few = 4;
  const std::vector<Callers> all = callers_of(error);
  if (all.size() < 2) return;
  for (const Callers& callers : all) {
    lines.push_back("    " + printable(callers.called) + ": called by " + text_of(callers.ranks));
    if (callers.texts.size() > few) continue;
    for (const std::string& text : callers.texts) lines.push_back("      " + text);
  }
  std::int64_t count = -static_cast<std::int64_t>(error.ranks.size());
  for (const RankRange range : error.rank_ranges)
    count += std::int64_t{range.last} - range.first + 1;
  if (count > 0) lines.push_back("    one of these: " + std::to_string(count) + " further ranks");
}

void explain_waits(std::vector<std::string>& lines, const GroupReport& report) {
  if (report.round) {
    lines.push_back("  round " + std::to_string(report.round->number) + ", " + report.round->call +
                    ": open for " + text_of(report.round->age) + ", called by " +
                    text_of(report.round->called));
    const int older = report.round->older_rounds;
    const std::string waiting = older == 0 ? "    waits for"
                                           : "    all who are needed came, but the oldest of " +
                                                 std::to_string(older) +
                                                 " open rounds before it waits for";
    add_ranks(lines, report, waiting, report.round->missing);
  }
  if (report.confirming) {
    lines.push_back("  round " + std::to_string(report.confirming->number) + ", " +
                    report.confirming->call + ": decided, begun " +
                    text_of(report.confirming->age) + " ago; " +
                    text_of(report.confirming->called) + " leaves it last");
    add_ranks(lines, report, "    waits for the confirmation of", report.confirming->missing);
  }
  if (report.regroup) {
    std::string size;
    if (report.regroup->everyone) size = " with everyone";
    if (report.regroup->new_size != 0) {
      size = " to " + std::to_string(report.regroup->new_size) + " ranks";
    }
    lines.push_back("  regroup" + size + ": open for " + text_of(report.regroup->age) +
                    ", called by " + text_of(report.regroup->called));
    add_ranks(lines, report, "    waits for", report.regroup->missing);
  }
  std::vector<std::string> texts;
  for (const WaitingReceiver& receiver : report.receivers) {
    if (texts.size() == told_in_full_max) break;
    texts.push_back("rank " + std::to_string(receiver.rank) + " for an object of tag " +
                    std::to_string(receiver.tag) + " for " + text_of(receiver.age) + ", from " +
                    rank_text(report, receiver.source));
  }
  add_first(lines, "  waiting to receive", texts, report.receivers.size());
  add_candidates(lines, report);
}

void explain_formed(std::vector<std::string>& lines, const GroupReport& report, Duration hung_for) {
  lines.push_back("group " + quoted_name(report.name) + ": epoch " + std::to_string(report.epoch) +
                  ", " + std::to_string(report.world_size) + " ranks, formed " +
                  text_of(report.age) + " ago");
  add_verdict(lines, report, hung_for);
  explain_waits(lines, report);
  if (!has_waiters(report)) lines.emplace_back("  nobody waits");
  if (report.failure) {
    lines.push_back("  the last round that failed, " + report.failure_call + ", " +
                    text_of(report.failure_age) + " ago: " + report.failure->message());
    add_calls(lines, *report.failure);
  }
  add_members(lines, report, MemberState::lost, "  lost");
  add_members(lines, report, MemberState::left, "  left");
  add_members(lines, report, MemberState::away, "  in it, but not connected");
  add_members(lines, report, MemberState::silent, "  in it, but silent");
  add_members(lines, report, MemberState::live, "  in it");
}

}  // namespace

bool waits_for_keys(const WaiterInfo& waiter) {
  return waiter.operation == "get" || waiter.operation == "take" || waiter.operation == "wait" ||
         waiter.operation == "queue_pop";
}

bool has_waiters(const GroupReport& report) {
  return report.epoch == 0 || report.round || report.confirming || report.regroup ||
         !report.receivers.empty() || !report.candidates.empty();
}

std::optional<Duration> held_up_for(const GroupReport& report) {
  std::optional<Duration> longest;
  const auto note = [&longest](Duration age) { longest = std::max(longest.value_or(age), age); };
  if (report.epoch == 0) note(report.age);
  if (report.round) note(report.round->age);
  if (report.confirming) note(report.confirming->age);
  if (report.regroup) note(report.regroup->age);
  for (const WaitingCandidate& candidate : report.candidates) {
    if (!candidate.standby) note(candidate.age);
  }
  return longest;
}

bool hangs(const GroupReport& report, Duration hung_for) {
  const auto held_up = held_up_for(report);
  return held_up && *held_up >= hung_for;
}

std::vector<std::string> explain(const GroupReport& report, Duration hung_for) {
  std::vector<std::string> lines;
  if (report.epoch == 0) {
    explain_forming(lines, report, hung_for);
  } else {
    explain_formed(lines, report, hung_for);
  }
  return lines;
}

std::string explain(const WaiterInfo& waiter) {
  // The longest that there is, which whoever has none is given.
  constexpr Duration longest = std::chrono::hours(24 * 30);
  const bool has_deadline = waiter.age + waiter.left < longest;
  return text_of(waiter.process) + " waits for " + text_of(waiter.age) + " in " + waiter.operation +
         ": " + printable(waiter.target) +
         (has_deadline ? " (" + text_of(waiter.left) + " left)" : " (without a deadline)");
}

}  // namespace muster::json
