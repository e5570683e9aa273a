#include "core/groups/glance/group_glance.h"

#include <algorithm>
#include <optional>

#include "core/groups/group_entries.h"
#include "core/groups/groups_state.h"

// A group at a glance. Nothing here changes anything. Rounds and receives that are young are not
// told of: a group that works looks the same all the time.

namespace muster::core {
namespace {

using Ranges = std::vector<std::pair<int, int>>;

/// Waits that are younger are what work looks like.
constexpr Duration young = std::chrono::seconds(1);
constexpr std::size_t told_max = 4;

Ranges pairs_of(const std::vector<RankRange>& ranges) {
  Ranges pairs;
  pairs.reserve(ranges.size());
  for (const RankRange range : ranges) pairs.emplace_back(range.first, range.last);
  return pairs;
}

Ranges pairs_of(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<RankRange> ranges;
  for (const std::uint32_t rank : ranks) base::add_to(ranges, rank);
  return pairs_of(ranges);
}

void add_rank_to(GroupGlance& glance, RankCondition state) {
  if (!glance.ranks.empty() && glance.ranks.back().first == state) {
    ++glance.ranks.back().second;
  } else {
    glance.ranks.emplace_back(state, 1);
  }
}

/// Whether ranks that are asked for in ascending order are in ranges.
class InRanges {
 public:
  explicit InRanges(const Ranges& ranges) : next_(ranges.begin()), end_(ranges.end()) {}
  bool operator()(std::uint32_t rank) {
    const int number = static_cast<int>(rank);
    while (next_ != end_ && next_->second < number) ++next_;
    return next_ != end_ && next_->first <= number;
  }

 private:
  Ranges::const_iterator next_;
  Ranges::const_iterator end_;
};

GroupGlance::Told told_of(std::uint32_t rank, const ProcessInfo& process) {
  return {rank, process.id, process.host, process.pid, process.label};
}

/// Of one whose session is there.
RankCondition state_of(const EngineServices& services, const Session& session,
                       RankCondition else_state) {
  if (session.connection == 0) return RankCondition::away;
  return is_silent(services, session) ? RankCondition::silent : else_state;
}

void look_at_forming(const EngineServices& services, const Joiners& joiners, GroupGlance& glance) {
  glance.state = GroupCondition::forming;
  for (const auto& [arrival, joiner] : joiners.all()) {
    if (joiner->waits.empty()) continue;
    glance.since = joiner->waits.first().parked.received;
    break;
  }
  std::vector<std::uint32_t> waiting;
  std::uint32_t next = 0;
  const auto close_gap = [&](std::uint32_t end) {
    if (next < end) glance.waits_for.emplace_back(next, static_cast<int>(end) - 1);
    for (; next < end; ++next) add_rank_to(glance, RankCondition::absent);
    next = end + 1;
  };
  for (const Joiner* const seated : joiners.forming().joiners()) {
    close_gap(seated->rank);
    add_rank_to(glance, state_of(services, seated->session, RankCondition::waiting));
    waiting.push_back(seated->rank);
  }
  close_gap(joiners.forming().world_size());
  glance.waiting = pairs_of(std::move(waiting));
}

void set_failure(GroupGlance& glance, const Failure& failure) {
  if (!failure) return;
  glance.failure_code = static_cast<std::uint16_t>(failure.code);
  glance.failure = failure.body->view();
}

void look_at_round(const Rounds& rounds, const Roster& roster, const Round& round,
                   GroupGlance& glance) {
  glance.state = GroupCondition::waiting;
  glance.since = round.opened;
  glance.call = text_of(round.call);
  glance.round = round.number;
  glance.waits_for = pairs_of(rounds.awaited(round).ranks);
  if (!round.is_open()) {  // it is confirmed
    const int hosting = static_cast<int>(roster.hosting_rank);
    glance.waiting = {{hosting, hosting}};
    return;
  }
  std::vector<std::uint32_t> called;
  for (const Member& member : roster.members) {
    if (member.live() && member.next_round > round.number) called.push_back(member.rank);
  }
  glance.waiting = pairs_of(std::move(called));
}

/// Who waits for an object is idle: nothing says that anybody owes it one.
///
/// returns  whether somebody has waited for one for long
bool look_at_receivers(const EngineServices& services, const Streams& streams,
                       GroupGlance& glance) {
  std::vector<std::uint32_t> waiting;
  Duration oldest{};
  for (const wire::ReceiverEntry& receiver : streams.receivers()) {
    if (receiver.age <= young) continue;
    waiting.push_back(receiver.rank);
    oldest = std::max(oldest, receiver.age);
  }
  if (waiting.empty()) return false;
  glance.state = GroupCondition::waiting;
  glance.since = services.now() - oldest;
  glance.call = "receive";
  glance.waiting = pairs_of(std::move(waiting));
  return true;
}

void look_at_epoch(const EngineServices& services, Epoch& epoch, const Regroups& regroups,
                   GroupGlance& glance) {
  const Roster& roster = epoch.roster;
  const Rounds& rounds = epoch.rounds;
  glance.since = epoch.formed;
  const auto& last = rounds.last_failure();
  const Round* const undecided = rounds.undecided();
  const Round* const round = undecided != nullptr ? undecided : rounds.confirming();
  const bool is_round_old = round != nullptr && services.now() - round->opened > young;
  if (roster.broken()) set_failure(glance, epoch.loss());
  if (const auto regroup = regroups.entry()) {
    glance.state = GroupCondition::regrouping;
    glance.since = services.now() - regroup->age;
    glance.call = "regroup";
    glance.waiting = pairs_of(regroup->called);
    glance.waits_for = pairs_of(regroup->missing);
  } else if (roster.broken()) {
    glance.state = GroupCondition::failed;
    glance.since = roster.broken_at;
  } else if (is_round_old) {
    look_at_round(rounds, roster, *round, glance);
  } else if (!look_at_receivers(services, epoch.streams, glance) && last.is_last) {
    glance.state = GroupCondition::failed;
    glance.since = last.at;
    glance.call = text_of(last.call);
    set_failure(glance, last.failure);
  }
}

RankCondition state_of(const EngineServices& services, const Member& member,
                       RankCondition else_state) {
  switch (member.standing) {
    case Standing::left: return RankCondition::left;
    case Standing::lost:
    case Standing::fenced: return RankCondition::lost;
    default: break;
  }
  return member.session == nullptr ? RankCondition::lost
                                   : state_of(services, *member.session, else_state);
}

void look_at_members(const EngineServices& services, const Roster& roster, GroupGlance& glance) {
  InRanges is_awaited(glance.waits_for);
  InRanges is_waiting(glance.waiting);
  for (const Member& member : roster.members) {
    const bool misses = is_awaited(member.rank);
    const bool waits = is_waiting(member.rank);
    const RankCondition state = state_of(services, member,
                                         misses  ? RankCondition::missing
                                         : waits ? RankCondition::waiting
                                                 : RankCondition::live);
    add_rank_to(glance, state);
    const bool is_told = misses || (roster.broken() && state == RankCondition::lost);
    if (is_told && glance.told.size() < told_max)
      glance.told.push_back(told_of(member.rank, member.process));
  }
}

}  // namespace

/// Its namespace is the caller's to say.
GroupGlance glance_of(const Group& group) {
  const EngineServices& services = group.state_.services;
  const wire::GroupEntry entry = group.summary();
  GroupGlance glance;
  glance.name = group.name_;
  glance.epoch = entry.epoch;
  glance.world_size = entry.world_size;
  glance.candidates = entry.candidates;
  if (!group.formed_) {
    look_at_forming(services, group.joiners_, glance);
    return glance;
  }
  look_at_epoch(services, group.formed_->epoch, group.formed_->regroups, glance);
  look_at_members(services, group.formed_->epoch.roster, glance);
  return glance;
}

bool glance_at(const GroupsState& state, const std::string& after, std::uint64_t weight_max,
               std::vector<GroupGlance>& glances) {
  constexpr std::uint64_t weight_of_group = 16;
  std::uint64_t weight = 0;
  auto next = after.empty() ? state.groups.begin() : state.groups.upper_bound(after);
  for (; next != state.groups.end() && weight < weight_max; ++next) {
    glances.push_back(glance_of(*next->second));
    weight += weight_of_group + glances.back().world_size;
  }
  return next != state.groups.end();
}

std::uint64_t GroupGlance::bytes() const {
  std::uint64_t bytes = sizeof *this + name_space.size() + name.size() + call.size() +
                        failure.size() + 8 * (ranks.size() + waits_for.size() + waiting.size());
  for (const Told& each : told) bytes += sizeof each + each.host.size() + each.label.size();
  return bytes;
}

}  // namespace muster::core
