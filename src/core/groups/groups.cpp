#include "core/groups/groups.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "auth/identity.h"
#include "core/groups/group_entries.h"
#include "core/session/failure.h"
#include "core/session/page.h"
#include "core/session/reply.h"

// Finds whom a request or an event is for: groups by their names, epochs by their numbers, members
// by their sessions. Every public function ends with `work`, which does what follows from it.

namespace muster::core {
namespace {

// What a reply takes that tells of a member or a candidate: beside its process, and with the
// longest names that there can be.
constexpr std::uint64_t member_entry_bytes = 80;
constexpr std::uint64_t member_entry_bytes_max = 512;

/// The grace is over in which the member's session could have joined again.
void has_no_handle(Member& member) {
  if (!member.is_unheld()) return;
  Group& group = *member.epoch.group;
  const Session& session = *member.session;
  group.leave(member);
  group.state().reconsider(session);
  group.state().work();
}

}  // namespace

/// What can never be right.
std::optional<Error> Groups::refusal(const wire::Join& request) const {
  const auto invalid = [](std::string detail) {
    return failure(ErrorCode::invalid_argument, std::move(detail));
  };
  const wire::ServerLimits& limits = state_.services.options().limits;
  if (request.group.empty()) return invalid("a group's name has at least one byte");
  if (request.group.size() > limits.key_bytes_max) {
    return too_large("the group's name", request.group.size(), "bytes", limits.key_bytes_max,
                     "key_bytes_max");
  }
  if (request.world_size == 0) return invalid("a group has at least one rank");
  if (request.world_size > limits.world_size_max) {
    return too_large("the world", request.world_size, "ranks", limits.world_size_max,
                     "world_size_max");
  }
  if (request.rank >= request.world_size) {
    return invalid("rank " + std::to_string(request.rank) + " is not below the world_size of " +
                   std::to_string(request.world_size));
  }
  if (request.data_expiration < Duration::zero()) return invalid("a negative data expiration");
  const std::vector<std::string_view>& tenants = request.other_tenants;
  if (tenants.size() > wire::other_tenants_max) {
    return invalid("a group names at most " + std::to_string(wire::other_tenants_max) +
                   " other tenants");
  }
  if (!std::all_of(tenants.begin(), tenants.end(), auth::is_part_of_identity)) {
    return invalid("the name of another tenant is not one");
  }
  // The member list must fit a reply.
  const std::uint64_t info_bytes_max =
      std::min<std::uint64_t>(limits.value_bytes_max, limits.round_bytes_max / request.world_size);
  if (request.info.size() > info_bytes_max) {
    return too_large("the info", request.info.size(), "bytes", info_bytes_max);
  }
  return std::nullopt;
}

/// Why `account` cannot have one more group.
std::optional<Error> Groups::refusal_to_make(const Account& account) const {
  const std::uint32_t of_identity_max = account.unit.limits.groups;
  if (of_identity_max != 0 && account.unit.groups_count >= of_identity_max) {
    return exhausted(state_.services.counted().tallies, Limit::identity_groups,
                     account.unit.name + " has the groups that its credential line allows",
                     account.unit.groups_count, of_identity_max);
  }
  const SharedLimit limit{state_.services.options().groups_per_namespace_max};
  const std::size_t count = state_.groups.size();
  if (!limit.has_place(count, account.groups_count, state_.accounts.size())) {
    return exhausted(
        state_.services.counted().tallies, Limit::groups,
        "groups_per_namespace_max groups are there already; end some, or raise the limit", count,
        limit.places_max);
  }
  const Quota& server = state_.services.memory().all;
  const std::uint64_t used_bytes = server.used_reserve_bytes();
  const std::uint64_t reserve_bytes = server.reserve_bytes() - server.reserve_bytes() / 4;
  if (used_bytes <= reserve_bytes || account.unit.is_below_memory_share()) return std::nullopt;
  return exhausted(state_.services.counted().tallies, Limit::groups_memory,
                   "memory is short: the reserve above memory_bytes_max is for groups that are "
                   "there already; raise it by `musterctl config set`, or remove keys",
                   server.used_bytes(), server.limit_bytes() + reserve_bytes);
}

/// The group of that name, made if need be; null when there are too many, or it belongs to others.
Group* Groups::group_for(const RequestContext& context, const wire::Join& request) {
  const std::string_view name = request.group;
  const auto found = state_.groups.find(name);
  if (found != state_.groups.end()) {
    const Session& session = context.session;
    if (found->second->origin.tenants.admits(session.tenant())) return found->second.get();
    if (session.grant != nullptr) {
      state_.services.effects().log(LogLevel::warning,
                                    to_string(session.grant->identity) + " was refused the group " +
                                        quoted_text(name) + " of another tenant in session " +
                                        std::to_string(session.id) + " of " +
                                        describe(session.process),
                                    session.account.unit.name);
    }
    Error error = failure(ErrorCode::permission_denied,
                          "the group belongs to another tenant; choose another name");
    error.group = name;
    record(*found->second, GroupEventKind::join_refused, error, &session.process);
    state_.services.turn_away(context, std::move(error));
    return nullptr;
  }
  Account& account = context.session.account;
  if (auto why = refusal_to_make(account)) {
    state_.services.fail(context, *std::move(why));
    return nullptr;
  }
  std::string key(name);
  GroupTenants tenants(context.session.tenant(), request.other_tenants);
  auto group = std::make_unique<Group>(state_, account, key, std::move(tenants));
  return state_.groups.emplace(std::move(key), std::move(group)).first->second.get();
}

Epoch* Groups::epoch_of(std::uint64_t number) const {
  const auto found = state_.epochs.find(number);
  return found == state_.epochs.end() ? nullptr : found->second.get();
}

Groups::Caller Groups::any_member(const RequestContext& context, std::uint64_t number) {
  Epoch* epoch = epoch_of(number);
  if (epoch != nullptr) {
    if (Member* member = epoch->roster.find(context.session)) return {epoch, member};
  }
  const bool has_moved = moved_member(context.session, number) != nullptr;
  Error error = failure(ErrorCode::stale_epoch,
                        has_moved ? "its members have regrouped, this rank among them; regroup() "
                                    "gives the new epoch again"
                                  : "this session is not a member of the epoch");
  error.epoch = number;
  state_.services.fail(context, std::move(error));
  return {};
}

Groups::Caller Groups::live_member(const RequestContext& context, std::uint64_t number) {
  const Caller caller = any_member(context, number);
  if (!caller || caller.member->live()) return caller;
  const bool fenced = caller.member->standing == Standing::fenced;
  state_.services.answer(
      context, answer_of_failure(fenced ? caller.epoch->roster.fenced : caller.epoch->loss(), {}));
  return {};
}

Groups::Caller Groups::unbroken_member(const RequestContext& context, std::uint64_t number) {
  const Caller caller = live_member(context, number);
  if (!caller || !caller.epoch->roster.broken()) return caller;
  state_.services.answer(context, answer_of_failure(caller.epoch->loss(), {}));
  return {};
}

Member* Groups::moved_member(const Session& session, std::uint64_t number) {
  if (const Epoch* epoch = epoch_of(number); epoch != nullptr && epoch->group != nullptr) {
    return nullptr;
  }
  for (Member* member : session.members) {
    const Group* group = epoch_of(member->roster.epoch)->group;
    if (member->live() && group != nullptr && group->epoch_before() == number) return member;
  }
  return nullptr;
}

void Groups::join(const RequestContext& context, const wire::Join& request) {
  if (auto why = refusal(request)) {
    why->group = request.group;
    return state_.services.fail(context, *std::move(why));
  }
  Group* group = group_for(context, request);
  if (group == nullptr) return;
  group->join(context, request);
  state_.touch(*group);
  state_.work();
}

Member* Groups::successor_of(const Session& session, std::uint64_t number) {
  for (Member* member : session.members) {
    const bool is_later = member->roster.epoch != number;
    if (is_later && member->live() && member->handle.epoch == number) return member;
  }
  return nullptr;
}

bool Groups::may_leave(const Session& session, std::uint64_t number) {
  if (successor_of(session, number) != nullptr) return true;
  Epoch* const epoch = epoch_of(number);
  return epoch != nullptr && epoch->roster.find(session) != nullptr;
}

void Groups::leave(const RequestContext& context, const wire::Leave& request) {
  if (Member* const successor = successor_of(context.session, request.epoch)) {
    state_.services.answer(context, answer_of(wire::EmptyReply{}));
    successor->hold(0);
    // A join of the session's may give it a handle yet.
    if (successor->is_unheld()) successor->epoch.group->leave(*successor);
    state_.reconsider(context.session);
    return state_.work();
  }
  const Caller caller = any_member(context, request.epoch);
  if (!caller) return;
  state_.services.answer(context, answer_of(wire::EmptyReply{}));
  if (caller.member->live()) {
    caller.epoch->group->leave(*caller.member);
    state_.reconsider(context.session);
  } else {
    state_.over.push_back(request.epoch);
    caller.member->unlink();
  }
  state_.work();
}

void Groups::regroup(const RequestContext& context, const wire::Regroup& request) {
  Member* moved = moved_member(context.session, request.epoch);
  if (moved != nullptr && moved->from_attempt == request.attempt) {
    const Group& group = *epoch_of(moved->roster.epoch)->group;
    return state_.services.answer(context, group.formed_answer(*moved, context.operation));
  }
  const Caller caller = live_member(context, request.epoch);
  if (!caller) return;
  caller.member->hold(request.epoch);
  caller.epoch->group->regroups().regroup(context, *caller.member, request);
  state_.work();
}

void Groups::cancel_regroup(const RequestContext& context, const wire::CancelRegroup& request) {
  const Caller caller = live_member(context, request.epoch);
  if (!caller) return;
  caller.epoch->group->regroups().cancel(*caller.member, request.attempt);
  state_.services.answer(context, answer_of(wire::EmptyReply{}));
  state_.work();
}

void Groups::members(const RequestContext& context, const wire::Members& request) {
  const Caller caller = live_member(context, request.epoch);
  if (!caller) return;
  const Roster& roster = caller.epoch->roster;
  wire::MembersReply reply;
  std::uint64_t bytes = 0;
  for (const Member& member : roster.members) {
    reply.members.push_back(entry_of(state_.services, member));
    reply.previous_ranks.push_back(member.previous_rank);
    bytes += member.info->view().size();
  }
  const auto is_known = [](const auto& rank) { return rank.has_value(); };
  std::vector<std::optional<std::uint32_t>>& previous = reply.previous_ranks;
  if (std::none_of(previous.begin(), previous.end(), is_known)) previous.clear();
  for (const Joiner* joiner : caller.epoch->group->candidates()) {
    bytes += joiner->info->view().size();
    const std::size_t listed = reply.members.size() - roster.members.size();
    if (bytes > state_.services.options().limits.round_bytes_max) break;
    if (listed == wire::candidates_listed_max) break;
    reply.members.push_back({joiner->rank, wire::MemberState::candidate, joiner->session.process,
                             state_.services.silence(joiner->session), joiner->info->view()});
  }
  state_.services.effects().spend(reply.members.size());
  state_.services.effects().spend_on_copying(bytes);
  state_.services.answer(context, answer_of(reply));
}

void Groups::collective(const RequestContext& context, const wire::CollectiveCall& request) {
  const Caller caller = live_member(context, request.epoch);
  if (!caller) return;
  caller.epoch->group->regroups().collective(context, *caller.member, request);
  state_.work();
}

void Groups::cancel_round(const RequestContext& context, const wire::CancelRound& request) {
  const Caller caller = live_member(context, request.epoch);
  if (caller) caller.epoch->rounds.cancel(context, *caller.member, request.round);
}

void Groups::interrupt(const RequestContext& context, const wire::Interrupt& request) {
  const Caller caller = live_member(context, request.epoch);
  if (caller) caller.epoch->interrupt(context, *caller.member, request);
}

void Groups::send(const RequestContext& context, const wire::Send& request) {
  const Caller caller = unbroken_member(context, request.epoch);
  if (caller) caller.epoch->streams.send(context, *caller.member, request);
}

void Groups::receive(const RequestContext& context, const wire::Receive& request) {
  const Caller caller = unbroken_member(context, request.epoch);
  if (caller) caller.epoch->streams.receive(context, *caller.member, request);
}

void Groups::expire_data(const RequestContext& context, const wire::ExpireData& request) {
  const Caller caller = unbroken_member(context, request.epoch);
  if (caller) caller.epoch->streams.expire_own(context, *caller.member, request.older_than);
}

void Groups::recover(const RequestContext& context, const wire::Recover& request) {
  const Caller caller = live_member(context, request.epoch);
  if (!caller) return;
  std::vector<std::uint64_t> next_sequences;
  state_.services.effects().spend(request.streams.size());
  next_sequences.reserve(request.streams.size());
  for (const wire::StreamName& stream : request.streams) {
    next_sequences.push_back(
        caller.epoch->streams.next_sequence({caller.member->rank, stream.destination, stream.tag}));
  }
  caller.epoch->rounds.recover(context, *caller.member, request.round, std::move(next_sequences));
}

wire::GroupsReply Groups::page(const Viewer& viewer, std::string_view after) const {
  wire::GroupsReply reply;
  std::uint64_t bytes = 0;
  std::uint64_t unseen_count = 0;
  for (auto next = state_.groups.upper_bound(after); next != state_.groups.end(); ++next) {
    if (bytes >= page_bytes_max) break;
    if (!next->second->is_known_to(viewer)) {
      ++unseen_count;
      continue;
    }
    reply.groups.push_back(next->second->summary());
    bytes += encoded_bytes(reply.groups.back());
  }
  state_.services.effects().spend(reply.groups.size() + unseen_count / unseen_per_step);
  return reply;
}

void Groups::list(const RequestContext& context, const wire::Groups& request) {
  state_.services.answer(context, answer_of(page(Viewer(context.session), request.after)));
}

const Group* Groups::find(const Viewer& viewer, std::string_view name) const {
  const auto found = state_.groups.find(name);
  if (found == state_.groups.end() || !found->second->is_known_to(viewer)) return nullptr;
  return found->second.get();
}

bool Groups::has_others(const Session& viewer) const {
  return std::any_of(state_.groups.begin(), state_.groups.end(), [&](const auto& each) {
    return !viewer.may_see(each.second->origin.tenants.owner());
  });
}

void Groups::inspect(const RequestContext& context, const wire::InspectGroup& request) {
  const Group* const group = find(Viewer(context.session), request.group);
  if (group != nullptr) {
    Answer answer;
    answer.head = group->report();
    return state_.services.answer(context, std::move(answer));
  }
  Error error = failure(ErrorCode::not_found, "there is no group of that name in this namespace");
  error.group = request.group;
  state_.services.fail(context, std::move(error));
}

std::uint64_t Groups::bytes_of_members(std::uint64_t number) const {
  const Epoch* const epoch = epoch_of(number);
  if (epoch == nullptr || epoch->group == nullptr) return 0;  // then the request fails
  std::uint64_t bytes = 0;
  for (const Member& member : epoch->roster.members) {
    bytes += member_entry_bytes + encoded_bytes(member.process) + member.info->view().size();
  }
  for (const Joiner* joiner : epoch->group->candidates()) {
    bytes +=
        member_entry_bytes + encoded_bytes(joiner->session.process) + joiner->info->view().size();
  }
  return bytes;
}

std::uint64_t Groups::bytes_of_group(const Session& viewer, std::string_view name) const {
  const Group* const group = find(Viewer(viewer), name);
  if (group == nullptr) return 0;
  const wire::GroupEntry summary = group->summary();
  return (std::uint64_t{summary.world_size} + summary.candidates) * member_entry_bytes_max;
}

void Groups::list_objects(const RequestContext& context, const wire::List& request) {
  state_.objects.list(state_.services, context, request);
}

void Groups::acknowledged(Session& session, const ReceivedObject& object) {
  Epoch* epoch = epoch_of(object.epoch);
  if (epoch == nullptr) return;
  const Member* member = epoch->roster.find(session);
  if (member == nullptr || !member->live() || member->rank != object.destination) return;
  epoch->streams.acknowledged(object);
}

void Groups::acknowledged(Session& session, const RoundPart& part) {
  Epoch* epoch = epoch_of(part.epoch);
  if (epoch == nullptr) return;
  Member* member = epoch->roster.find(session);
  if (member == nullptr || !member->live() || member->rank != part.rank) return;
  epoch->rounds.acknowledged(*member, part.round);
}

void Groups::acknowledged(Session& session, const Membership& membership) {
  const auto [number, of_join] = membership;
  Epoch* const epoch = epoch_of(number);
  if (Member* const member = epoch != nullptr ? epoch->roster.find(session) : nullptr) {
    member->hold(number);
    if (of_join) member->drop_claim();
  } else if (Member* const moved = moved_member(session, number);
             moved != nullptr && moved->handle.epoch == 0) {
    moved->hold(number);
  }
}

void Groups::abandoned(Session& session, const Membership& membership) {
  Epoch* const epoch = epoch_of(membership.epoch);
  Member* const member = epoch != nullptr ? epoch->roster.find(session) : nullptr;
  if (member != nullptr && membership.of_join) member->drop_claim();
}

void Groups::heard(Session& session) {
  state_.reconsider(session);
  state_.work();
}

void Groups::disconnected(Session& session) {
  state_.reconsider(session);
  state_.work();
}

void Groups::session_ended(Session& session, LossCause cause, const Error* why) {
  const std::vector<Member*> members = session.members;
  for (Member* member : members) {
    const std::uint64_t number = member->roster.epoch;
    if (!member->live()) {
      state_.over.push_back(number);
      member->unlink();
      continue;
    }
    Group& group = *epoch_of(number)->group;
    if (cause == LossCause::none) {
      group.leave(*member);
    } else {
      group.lose(*member, cause, why);
    }
  }
  state_.reconsider(session);
  state_.work();
}

void Groups::right_removed(Session& session) {
  const std::vector<Member*> members = session.members;
  for (Member* member : members) {
    if (member->live()) epoch_of(member->roster.epoch)->group->lose(*member, LossCause::revoked);
  }
  state_.reconsider(session);
  state_.work();
}

void Groups::resumed(Session& session) {
  for (const Member* member : session.members) {
    epoch_of(member->roster.epoch)->tell_again(*member);
  }
  for (const auto& [id, parked] : session.requests.parked) parked.wait->resumed();
  state_.work();
}

void Groups::fired(Timer& timer) {
  if (timer.kind() == TimerKind::round) {
    auto& round = timer.owner<Round>();
    return round.rounds.fired(round);
  }
  if (timer.kind() == TimerKind::forming) {
    GroupsState& state = timer.owner<Group>().state();
    state.touch(timer.owner<Group>());
    return state.work();
  }
  if (timer.kind() == TimerKind::member) return has_no_handle(timer.owner<Member>());
  auto& epoch = timer.owner<Epoch>();
  if (&timer == &epoch.expiry) return epoch.objects_expire();
  if (&timer == &epoch.telling) return epoch.tell_who_is_gone();
  Group& group = *epoch.group;
  const AbandonedDeadline& abandoned = group.regroups().abandoned();
  group.regroup_deadline(epoch.roster.members[abandoned.rank], abandoned.timeout);
  group.state().touch(group);
  group.state().work();
}

}  // namespace muster::core
