#include <algorithm>
#include <utility>

#include "core/failure.h"
#include "core/group.h"
#include "core/reply_heads.h"

// What operators are told of groups: who is in, who is missing, who waits for whom. Nothing here
// changes anything.

namespace muster::core {
namespace {

wire::MemberEntry entry_of(const Host& host, std::uint32_t rank, const Session& session) {
  wire::MemberEntry entry;
  entry.rank = rank;
  entry.process = session.process;
  entry.silence = host.silence(session);
  if (session.connection == 0) {
    entry.state = wire::MemberState::away;
  } else if (is_silent(host, session)) {
    entry.state = wire::MemberState::silent;
  }
  return entry;
}

wire::RoundEntry entry_of(const Host& host, const Rounds& rounds, const Round& round,
                          std::string_view call) {
  Rounds::Awaited awaited = rounds.awaited(round);
  wire::RoundEntry entry;
  entry.number = round.number;
  entry.call = call;
  entry.age = host.now() - round.opened;
  entry.missing = std::move(awaited.ranks);
  entry.older_rounds = awaited.older_rounds;
  return entry;
}

}  // namespace

bool is_silent(const Host& host, const Session& session) {
  constexpr int heartbeats = 3;
  return host.silence(session) >= heartbeats * host.options().limits.heartbeat;
}

wire::MemberEntry entry_of(const Host& host, const Member& member) {
  if (member.live()) {
    wire::MemberEntry entry = entry_of(host, member.rank, *member.session);
    entry.info = member.info->view();
    return entry;
  }
  const bool left = member.standing == Standing::left;
  return {member.rank, left ? wire::MemberState::left : wire::MemberState::lost, member.process,
          member.silence_at_end, member.info->view()};
}

wire::GroupEntry Group::summary() const {
  wire::GroupEntry entry;
  entry.name = name_;
  entry.world_size = world_size_;
  entry.candidates = static_cast<std::uint32_t>(standbys_.size() + rank_candidates_.size());
  if (epoch_ == nullptr) {
    entry.live = seated_count_;
    return entry;
  }
  entry.epoch = epoch_->roster.epoch;
  entry.live = epoch_->roster.live_count;
  const Rounds& rounds = epoch_->rounds;
  const Round* undecided = rounds.undecided();
  if (const Round* round = undecided != nullptr ? undecided : rounds.confirming()) {
    entry.round = round->number;
    entry.round_age = room_.host.now() - round->opened;
  }
  return entry;
}

void Group::inspect(const RequestContext& context) {
  wire::InspectGroupReply reply;
  reply.world_size = world_size_;
  std::deque<std::string> calls;  // viewed by the reply
  if (epoch_ == nullptr) {
    inspect_forming(reply);
  } else {
    inspect_formed(reply, calls);
  }
  for (const auto& [arrival, joiner] : joiners_) {
    if (joiner->place == Joiner::Place::seat || joiner->waits.empty()) continue;
    if (reply.candidates.size() == wire::list_entries_max) break;
    reply.candidates.push_back(candidate_entry(*joiner));
  }
  for (wire::MemberEntry& member : reply.members) member.info = {};  // might not fit
  room_.host.answer(context, answer_of(reply));
}

wire::CandidateEntry Group::candidate_entry(const Joiner& joiner) const {
  const Instant now = room_.host.now();
  wire::CandidateEntry entry;
  entry.member = entry_of(room_.host, joiner.rank, joiner.session);
  entry.world_size = joiner.world_size;
  entry.standby = joiner.standby;
  entry.waits_for_holder = joiner.place == Joiner::Place::claimant;
  entry.age = now - joiner.waits.first().parked.received;
  entry.left = joiner.waits.last().parked.deadline - now;
  return entry;
}

void Group::inspect_forming(wire::InspectGroupReply& reply) const {
  for (const auto& [arrival, joiner] : joiners_) {
    if (joiner->waits.empty()) continue;
    reply.age = room_.host.now() - joiner->waits.first().parked.received;
    break;
  }
  auto seat = seats_.begin();
  for (std::uint32_t rank = 0; rank < world_size_ && !seats_.empty(); ++rank) {
    while (seat != seats_.end() && seat->first < rank) ++seat;
    if (seat != seats_.end() && seat->first == rank && seat->second != nullptr) {
      reply.members.push_back(entry_of(room_.host, rank, seat->second->session));
    } else {
      add_to(reply.missing, rank);
    }
  }
}

void Group::inspect_formed(wire::InspectGroupReply& reply, std::deque<std::string>& calls) {
  const Instant now = room_.host.now();
  const Roster& roster = epoch_->roster;
  reply.epoch = roster.epoch;
  reply.age = now - epoch_->formed;
  for (const Member& member : roster.members) reply.members.push_back(entry_of(room_.host, member));
  const Rounds& rounds = epoch_->rounds;
  if (const Round* round = rounds.undecided()) {
    const std::string& call = calls.emplace_back(text_of(round->call));
    wire::RoundEntry& entry = reply.round.emplace(entry_of(room_.host, rounds, *round, call));
    for (const Member& member : roster.members) {
      if (member.live() && member.next_round > round->number) add_to(entry.called, member.rank);
    }
  }
  if (const Round* round = rounds.confirming()) {
    const std::string& call = calls.emplace_back(text_of(round->call));
    reply.confirming = entry_of(room_.host, rounds, *round, call);
    add_to(reply.confirming->called, roster.hosting_rank);
  }
  if (attempt_.open) reply.regroup = regroup_entry();
  reply.receivers = epoch_->streams.receivers();
  if (const auto& last = epoch_->rounds.last_failure(); last.failure) {
    reply.failed = true;
    reply.failure_age = now - last.at;
    reply.failure_call = calls.emplace_back(text_of(last.call));
    reply.failure = wire::decode_error(static_cast<std::uint16_t>(last.failure.code),
                                       last.failure.body->view());
  }
}

wire::RegroupEntry Group::regroup_entry() {
  wire::RegroupEntry entry{
      attempt_.new_size, attempt_.min_size, room_.host.now() - attempt_.opened, {}, {}};
  std::vector<std::uint32_t> missing = ranks_without_candidate();
  for (const Member& member : epoch_->roster.members) {
    if (!member.live()) continue;
    if (called(member)) {
      add_to(entry.called, member.rank);
    } else {
      missing.push_back(member.rank);
    }
  }
  std::sort(missing.begin(), missing.end());
  for (const std::uint32_t rank : missing) add_to(entry.missing, rank);
  return entry;
}

void GroupRoom::list(const RequestContext& context, const wire::Groups& request) const {
  std::vector<const Group*> later;
  for (const auto& [name, group] : groups) {
    if (name > request.after) later.push_back(group.get());
  }
  const std::size_t count = std::min<std::size_t>(later.size(), wire::list_entries_max);
  std::partial_sort(
      later.begin(), later.begin() + static_cast<std::ptrdiff_t>(count), later.end(),
      [](const Group* left, const Group* right) { return left->name() < right->name(); });
  later.resize(count);
  wire::GroupsReply reply;
  std::uint64_t bytes = 0;
  for (const Group* group : later) {
    bytes += group->name().size();
    if (bytes > host.options().limits.round_bytes_max && !reply.groups.empty()) break;
    reply.groups.push_back(group->summary());
  }
  host.answer(context, answer_of(reply));
}

void GroupRoom::inspect(const RequestContext& context, const wire::InspectGroup& request) const {
  const auto found = groups.find(std::string(request.group));
  if (found != groups.end()) return found->second->inspect(context);
  Error error = failure(ErrorCode::not_found, "there is no group of that name in this namespace");
  error.group = request.group;
  host.fail(context, std::move(error));
}

}  // namespace muster::core
