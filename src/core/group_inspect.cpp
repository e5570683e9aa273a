#include <algorithm>
#include <utility>

#include "core/failure.h"
#include "core/group.h"
#include "core/reply_heads.h"

// What operators are told of groups: who is in, who is missing, who waits for whom. Nothing here
// changes anything.

namespace muster::core {
namespace {

constexpr int silent_heartbeats = 3;

wire::MemberEntry entry_of(const Host& host, std::uint32_t rank, const Session& session) {
  wire::MemberEntry entry;
  entry.rank = rank;
  entry.process = session.process;
  entry.silence = host.silence(session);
  const bool silent = entry.silence >= silent_heartbeats * host.options().limits.heartbeat;
  entry.state = silent ? wire::MemberState::silent : wire::MemberState::live;
  return entry;
}

}  // namespace

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
  if (const Round* round = epoch_->rounds.undecided()) {
    entry.round = round->number;
    entry.round_age = room_.host.now() - round->opened;
  }
  return entry;
}

void Group::inspect(const RequestContext& context) {
  wire::InspectGroupReply reply;
  reply.world_size = world_size_;
  std::string call;  // viewed by the reply
  if (epoch_ == nullptr) {
    inspect_forming(reply);
  } else {
    inspect_formed(reply, call);
  }
  for (const auto& [arrival, joiner] : joiners_) {
    if (joiner->place == Joiner::Place::seat) continue;
    if (reply.members.size() >= world_size_ + std::size_t{wire::list_entries_max}) break;
    reply.members.push_back(entry_of(room_.host, joiner->rank, joiner->session));
    reply.members.back().state = wire::MemberState::candidate;
  }
  for (wire::MemberEntry& member : reply.members) member.info = {};  // might not fit
  room_.host.answer(context, answer_of(reply));
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

void Group::inspect_formed(wire::InspectGroupReply& reply, std::string& call) {
  const Instant now = room_.host.now();
  const Roster& roster = epoch_->roster;
  reply.epoch = roster.epoch;
  reply.age = now - epoch_->formed;
  for (const Member& member : roster.members) reply.members.push_back(entry_of(room_.host, member));
  if (const Round* round = epoch_->rounds.undecided()) {
    call = text_of(round->call);
    wire::RoundEntry& entry = reply.round.emplace();
    entry.number = round->number;
    entry.call = call;
    entry.age = now - round->opened;
    entry.missing = epoch_->rounds.missing(*round);
    for (const Member& member : roster.members) {
      if (member.live() && member.next_round > round->number) add_to(entry.called, member.rank);
    }
  }
  if (attempt_.open) reply.regroup = regroup_entry();
  reply.receivers = epoch_->streams.receivers();
  if (const auto& last = epoch_->rounds.last_failure(); last.failure) {
    reply.failed = true;
    reply.failure_age = now - last.at;
    reply.failure = wire::decode_error(static_cast<std::uint16_t>(last.failure.code),
                                       last.failure.body->view());
  }
}

wire::RegroupEntry Group::regroup_entry() {
  wire::RegroupEntry entry{
      attempt_.new_size, attempt_.min_size, room_.host.now() - attempt_.opened, {}, {}};
  for (const Member& member : epoch_->roster.members) {
    if (member.live()) add_to(called(member) ? entry.called : entry.missing, member.rank);
  }
  if (!entry.missing.empty()) return entry;
  for (const std::uint32_t rank : ranks_without_candidate()) add_to(entry.missing, rank);
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
