#include <algorithm>

#include "oracle.h"

// Whom an error names, and what it says about them: who they are, when they were last heard, how
// their loss was noticed. The oracle knows what the server could see of each.

namespace muster::sim {

using namespace std::chrono_literals;

namespace {

/// So many ranks of an error stay in what is told of a group's past.
constexpr std::size_t history_in_full_max = 8;

}  // namespace

/// R2: each rank with its process, and when that was last heard.
void Oracle::check_reports(std::uint64_t client, const Error& error, std::size_t in_full_max) {
  const wire::ServerLimits& limits = terms_.limits;
  if (error.decided_by == "client") return;
  check_ranges(error, in_full_max);
  for (const RankReport& report : error.ranks) {
    const bool is_known = report.process.id != ProcessId{};
    if (!report.joined || report.rank < 0) {
      if (is_known && report.rank >= 0) problem("an error knows a process that never joined");
      continue;
    }
    const Life* life = life_of(report.process.id, client);
    if (life == nullptr) return problem("an error names a process that never was");
    if (report.process.host != "host" + std::to_string(life->pid) ||
        report.process.pid != life->pid) {
      problem("an error mistakes " + life->name + " for another process");
    }
    if (!report.silence || *report.silence < Duration::zero() ||
        *report.silence > longer(limits.session_timeout + limits.slack) + 1s) {
      problem("an error is wrong about when " + life->name + " was last heard");
    }
  }
}

/// No false rank_lost: each rank that is named was gone, as far as the server could see, and for
/// the cause that is told. What is told of all is what is told of each.
void Oracle::check_loss(std::uint64_t client, const Error& error) {
  if (error.ranks.empty()) problem("rank_lost names nobody");
  const std::string group = group_id(client, error.group);
  bool is_common = true;
  for (const RankReport& report : error.ranks) {
    const Life* life = life_of(report.process.id, client);
    if (life == nullptr) return problem("rank_lost names a process that never was");
    is_common &= report.cause == error.ranks.front().cause;
    if (!is_cause(report.cause, *life, group, report)) {
      problem("rank_lost tells of " + life->name + " the cause " +
              std::string(name_of(report.cause)));
    }
    if (!is_lost(*life, group, static_cast<std::uint32_t>(report.rank))) {
      problem("rank_lost names " + life->name + ", who lives");
    }
  }
  const LossCause common = is_common ? error.ranks.front().cause : LossCause::none;
  const bool is_in_full = error.ranks.size() < wire::ranks_in_full_max;  // else more are at fault
  if (is_in_full && error.cause != common) {
    problem("rank_lost has the cause " + std::string(name_of(error.cause)));
  }
}

Duration Oracle::silence_of(const Life& life) const {
  const Duration silent = life.heard ? running() - *life.heard : Duration(0);
  return std::max(life.longest_silence, silent);
}

Duration Oracle::absence_of(const Life& life) const {
  const Duration closed = life.closed ? running() - *life.closed : Duration(0);
  return std::max(life.longest_closed, closed);
}

/// Whether the server may have noticed its loss like this, and said when it was last heard.
bool Oracle::is_cause(LossCause cause, const Life& life, const std::string& group,
                      const RankReport& report) const {
  const Duration grace = shorter(terms_.limits.grace);
  const Duration timeout = shorter(terms_.limits.session_timeout);
  const Duration silence = report.silence.value_or(Duration(0));
  switch (cause) {
    case LossCause::none: return false;
    case LossCause::closed: return absence_of(life) >= grace && silence >= grace;
    case LossCause::heartbeat: return silence_of(life) >= timeout && silence >= timeout;
    case LossCause::restarted:
      return groups.somebody_asked_for(group, static_cast<std::uint32_t>(report.rank), life.client);
    case LossCause::reported: return life.was_reported;
    case LossCause::revoked: return life.is_stranger || life.revoked_until;
  }
  return false;
}

/// Whether the server may have seen it go.
bool Oracle::is_lost(const Life& life, const std::string& group, std::uint32_t rank) const {
  return silence_of(life) >= shorter(terms_.limits.session_timeout) ||
         absence_of(life) >= shorter(terms_.limits.grace) || life.was_reported ||
         life.revoked_until ||
         life.is_stranger ||  // of its group of one, when it may not join any more
         (life.was_away && groups.somebody_asked_for(group, rank, life.client));
}

/// J4: by somebody else, who is in the group or wants to be, and was heard a moment ago.
bool Oracle::may_be_in_use(const Ask& ask, const Error& error) {
  if (ask.operation != wire::operation<wire::Join> || error.ranks.empty()) return false;
  const Life* holder = life_of(error.ranks[0].process.id, ask.client);
  if (holder == nullptr || holder->client == ask.client) return false;
  if (!groups.has_asked(ask.group, holder->client)) return false;
  if (!holder->heard) return true;
  const Duration since = now() - ask.begun;
  return running() - *holder->heard <= longer(3 * terms_.limits.heartbeat + since) + 1s;
}

/// A regroup to a size may also name candidates, who do not wait to join any more.
void Oracle::check_left(std::uint64_t client, const Error& error, bool of_regroup) {
  if (error.ranks.empty()) problem("rank_left names nobody");
  for (const RankReport& report : error.ranks) {
    const Life* life = life_of(report.process.id, client);
    if (life == nullptr) {
      problem("rank_left names a process that never was");
    } else if (!groups.may_have_left(group_id(client, error.group), life->client) &&
               !life->said_goodbye && !of_regroup) {
      problem("rank_left names " + life->name + ", who has not left");
    }
  }
}

void Oracle::check_entry(std::uint64_t client, const std::string& group,
                         const wire::MemberEntry& entry, Instant asked) {
  const Life* life = life_of(entry.process.id, client);
  if (life == nullptr) return problem("a member is told of that never was");
  const auto wrong = [&](const char* what) {
    problem(life->name + " is told of as " + what + " in group " + group);
  };
  if (entry.process.host != "host" + std::to_string(life->pid) || entry.process.pid != life->pid) {
    wrong("another process");
  }
  switch (entry.state) {
    case wire::MemberState::lost:
      if (!is_lost(*life, group, entry.rank) && !life->may_be_fenced) wrong("lost");
      break;
    case wire::MemberState::left:
      if (!groups.may_have_left(group, life->client) && !life->said_goodbye) wrong("left");
      break;
    default:
      if (life->died && *life->died < asked && is_surely_lost(*life, asked)) wrong("there");
      break;
  }
}

void Oracle::check_record(std::uint64_t client, const wire::HistoryRecord& record,
                          std::uint64_t incarnation) {
  const std::size_t before = problems_.size();
  Error error = record.error.value_or(Error());
  error.group = record.group;
  switch (record.what) {
    case GroupEventKind::formed:
    case GroupEventKind::regrouped:
      if (!groups.may_have_size({incarnation, record.epoch}, record.world_size))
        problem("it has formed in another size");
      break;
    case GroupEventKind::rank_lost: check_loss(client, error); break;
    case GroupEventKind::rank_left: check_left(client, error); break;
    default: check_reports(client, error, history_in_full_max); break;
  }
  if (problems_.size() != before) problem("that is the history of group " + error.group);
}

}  // namespace muster::sim
