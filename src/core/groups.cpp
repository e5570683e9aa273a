#include "core/groups.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/failure.h"
#include "core/group.h"
#include "core/reply_heads.h"

// Finds whom a request or an event is for: groups by their names, epochs by their numbers, members
// by their sessions. Every public function ends with `work`, which does what follows from it.

namespace muster::core {
class Groups::Impl : public GroupRoom {
 public:
  using GroupRoom::GroupRoom;

  std::optional<Error> refusal(const wire::Join& request) const;
  Group* group_for(const RequestContext& context, std::string_view name);
  Epoch* epoch_of(std::uint64_t number) const;

  // Who the caller is in an epoch. Null, and the request has failed, when it is nobody there; when
  // it was lost or fenced; when any member was lost.
  Member* any_member(const RequestContext& context, std::uint64_t epoch);
  Member* live_member(const RequestContext& context, std::uint64_t epoch);
  Member* unbroken_member(const RequestContext& context, std::uint64_t epoch);
  /// What has become of a member of `epoch` that regrouped; null: it did not.
  Member* moved_member(const Session& session, std::uint64_t epoch);
};

/// What can never be right.
std::optional<Error> Groups::Impl::refusal(const wire::Join& request) const {
  const auto invalid = [](std::string detail) {
    return failure(ErrorCode::invalid_argument, std::move(detail));
  };
  const wire::ServerLimits& limits = host.options().limits;
  if (request.group.empty()) return invalid("a group's name has at least one byte");
  if (request.group.size() > limits.key_bytes_max) {
    return too_large("the group's name", request.group.size(), "bytes", limits.key_bytes_max);
  }
  if (request.world_size == 0) return invalid("a group has at least one rank");
  if (request.world_size > limits.world_size_max) {
    return too_large("the world", request.world_size, "ranks", limits.world_size_max);
  }
  if (request.rank >= request.world_size) {
    return invalid("rank " + std::to_string(request.rank) + " is not below the world_size of " +
                   std::to_string(request.world_size));
  }
  if (request.data_expiration < Duration::zero()) return invalid("a negative data expiration");
  // The member list must fit a reply.
  const std::uint64_t info_bytes_max =
      std::min<std::uint64_t>(limits.value_bytes_max, limits.round_bytes_max / request.world_size);
  if (request.info.size() > info_bytes_max) {
    return too_large("the info", request.info.size(), "bytes", info_bytes_max);
  }
  return std::nullopt;
}

/// The group of that name, made if need be; null when there are too many.
Group* Groups::Impl::group_for(const RequestContext& context, std::string_view name) {
  std::string key(name);
  const auto found = groups.find(key);
  if (found != groups.end()) return found->second.get();
  const std::uint32_t count_max = host.options().groups_per_namespace_max;
  if (groups.size() >= count_max) {
    Error error =
        failure(ErrorCode::resource_exhausted, "groups_per_namespace_max groups are there already");
    error.limit = count_max;
    error.actual = groups.size();
    host.fail(context, std::move(error));
    return nullptr;
  }
  auto group = std::make_unique<Group>(*this, key);
  return groups.emplace(std::move(key), std::move(group)).first->second.get();
}

Epoch* Groups::Impl::epoch_of(std::uint64_t number) const {
  const auto found = epochs.find(number);
  return found == epochs.end() ? nullptr : found->second.get();
}

Member* Groups::Impl::any_member(const RequestContext& context, std::uint64_t number) {
  Epoch* epoch = epoch_of(number);
  if (epoch != nullptr) {
    if (Member* member = epoch->roster.find(context.session)) return member;
  }
  const bool has_moved = moved_member(context.session, number) != nullptr;
  Error error = failure(ErrorCode::stale_epoch,
                        has_moved ? "its members have regrouped, this rank among them; regroup() "
                                    "gives the new epoch again"
                                  : "this session is not a member of the epoch");
  error.epoch = number;
  host.fail(context, std::move(error));
  return nullptr;
}

Member* Groups::Impl::live_member(const RequestContext& context, std::uint64_t number) {
  Member* member = any_member(context, number);
  if (member == nullptr || member->live()) return member;
  Roster& roster = member->roster;
  const bool fenced = member->standing == Standing::fenced;
  host.answer(context, answer_of_failure(fenced ? roster.fenced : roster.loss(quota), {}));
  return nullptr;
}

Member* Groups::Impl::unbroken_member(const RequestContext& context, std::uint64_t number) {
  Member* member = live_member(context, number);
  if (member == nullptr || !member->roster.broken()) return member;
  host.answer(context, answer_of_failure(member->roster.loss(quota), {}));
  return nullptr;
}

Member* Groups::Impl::moved_member(const Session& session, std::uint64_t number) {
  if (const Epoch* epoch = epoch_of(number); epoch != nullptr && epoch->group != nullptr) {
    return nullptr;
  }
  for (Member* member : session.members) {
    const Group* group = epoch_of(member->roster.epoch)->group;
    if (member->live() && group != nullptr && group->epoch_before() == number) return member;
  }
  return nullptr;
}

Groups::Groups(Host& host, Quota& quota) : impl_(std::make_unique<Impl>(host, quota)) {}
Groups::~Groups() = default;

void Groups::join(const RequestContext& context, const wire::Join& request) {
  if (auto why = impl_->refusal(request)) {
    why->group = request.group;
    return impl_->host.fail(context, *std::move(why));
  }
  Group* group = impl_->group_for(context, request.group);
  if (group == nullptr) return;
  group->join(context, request);
  impl_->touch(*group);
  impl_->work();
}

void Groups::leave(const RequestContext& context, const wire::Leave& request) {
  Member* member = impl_->any_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->host.answer(context, answer_of(wire::EmptyReply{}));
  if (member->live()) {
    impl_->epoch_of(request.epoch)->group->leave(*member);
    impl_->reconsider(context.session);
  } else {
    impl_->over.push_back(request.epoch);
    member->unlink();
  }
  impl_->work();
}

void Groups::regroup(const RequestContext& context, const wire::Regroup& request) {
  Member* moved = impl_->moved_member(context.session, request.epoch);
  if (moved != nullptr && moved->from_attempt == request.attempt) {
    return impl_->epoch_of(moved->roster.epoch)->group->answer_formed(context, *moved);
  }
  Member* member = impl_->live_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->group->regroup(context, *member, request);
  impl_->work();
}

void Groups::cancel_regroup(const RequestContext& context, const wire::CancelRegroup& request) {
  const Member* member = impl_->live_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->group->cancel_regroup(*member, request.attempt);
  impl_->host.answer(context, answer_of(wire::EmptyReply{}));
  impl_->work();
}

void Groups::members(const RequestContext& context, const wire::Members& request) {
  const Member* self = impl_->live_member(context, request.epoch);
  if (self == nullptr) return;
  wire::MembersReply reply;
  std::uint64_t bytes = 0;
  for (const Member& member : self->roster.members) {
    reply.members.push_back(entry_of(impl_->host, member));
    bytes += member.info->view().size();
  }
  for (const Joiner* joiner : impl_->epoch_of(request.epoch)->group->candidates()) {
    bytes += joiner->info->view().size();
    const std::size_t listed = reply.members.size() - self->roster.members.size();
    if (bytes > impl_->host.options().limits.round_bytes_max) break;
    if (listed == wire::candidates_listed_max) break;
    reply.members.push_back({joiner->rank, wire::MemberState::candidate, joiner->session.process,
                             impl_->host.silence(joiner->session), joiner->info->view()});
  }
  impl_->host.answer(context, answer_of(reply));
}

void Groups::collective(const RequestContext& context, const wire::CollectiveCall& request) {
  Member* member = impl_->live_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->group->collective(context, *member, request);
  impl_->work();
}

void Groups::cancel_round(const RequestContext& context, const wire::CancelRound& request) {
  const Member* member = impl_->live_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->rounds.cancel(context, *member, request.round);
}

void Groups::send(const RequestContext& context, const wire::Send& request) {
  Member* member = impl_->unbroken_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->streams.send(context, *member, request);
}

void Groups::receive(const RequestContext& context, const wire::Receive& request) {
  Member* member = impl_->unbroken_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->streams.receive(context, *member, request);
}

void Groups::expire_data(const RequestContext& context, const wire::ExpireData& request) {
  Member* member = impl_->unbroken_member(context, request.epoch);
  if (member == nullptr) return;
  impl_->epoch_of(request.epoch)->streams.expire_own(context, *member, request.older_than);
}

void Groups::recover(const RequestContext& context, const wire::Recover& request) {
  Member* member = impl_->live_member(context, request.epoch);
  if (member == nullptr) return;
  Epoch& epoch = *impl_->epoch_of(request.epoch);
  std::vector<std::uint64_t> next_sequences;
  next_sequences.reserve(request.streams.size());
  for (const wire::StreamName& stream : request.streams) {
    next_sequences.push_back(
        epoch.streams.next_sequence({member->rank, stream.destination, stream.tag}));
  }
  epoch.rounds.recover(context, *member, request.round, std::move(next_sequences));
}

void Groups::list(const RequestContext& context, const wire::Groups& request) {
  impl_->list(context, request);
}

void Groups::inspect(const RequestContext& context, const wire::InspectGroup& request) {
  impl_->inspect(context, request);
}

void Groups::list_objects(const RequestContext& context, const wire::List& request) {
  impl_->objects.list(impl_->host, context, request);
}

void Groups::acknowledged(Session& session, const ReceivedObject& object) {
  Epoch* epoch = impl_->epoch_of(object.epoch);
  if (epoch == nullptr) return;
  const Member* member = epoch->roster.find(session);
  if (member == nullptr || !member->live() || member->rank != object.destination) return;
  epoch->streams.acknowledged(object);
}

void Groups::acknowledged(Session& session, const RoundPart& part) {
  Epoch* epoch = impl_->epoch_of(part.epoch);
  if (epoch == nullptr) return;
  Member* member = epoch->roster.find(session);
  if (member == nullptr || !member->live() || member->rank != part.rank) return;
  epoch->rounds.acknowledged(*member, part.round);
}

void Groups::heard(Session& session) {
  impl_->reconsider(session);
  impl_->work();
}

void Groups::disconnected(Session& session) {
  impl_->reconsider(session);
  impl_->work();
}

void Groups::session_ended(Session& session, LossCause cause) {
  const std::vector<Member*> members = session.members;
  for (Member* member : members) {
    const std::uint64_t number = member->roster.epoch;
    if (!member->live()) {
      impl_->over.push_back(number);
      member->unlink();
      continue;
    }
    Group& group = *impl_->epoch_of(number)->group;
    if (cause == LossCause::none) {
      group.leave(*member);
    } else {
      group.lose(*member, cause);
    }
  }
  impl_->reconsider(session);
  impl_->work();
}

void Groups::resumed(Session& session) {
  for (const Member* member : session.members) {
    impl_->epoch_of(member->roster.epoch)->tell_again(*member);
  }
}

void Groups::fired(Timer& timer) {
  if (timer.kind() == TimerKind::round) return Rounds::fired(timer.owner<Round>());
  auto& epoch = timer.owner<Epoch>();
  if (&timer == &epoch.expiry) return epoch.objects_expire();
  if (&timer == &epoch.telling) return epoch.tell_who_is_gone();
  GroupRoom& room = epoch.group->room();
  epoch.group->abandoned_regroup_due();
  room.work();
}

void Groups::add_counts(Counts& counts) const {
  counts.objects += impl_->objects.count();
  counts.groups += impl_->groups.size();
  counts.epochs += impl_->epochs.size();
  for (const auto& [number, epoch] : impl_->epochs) {
    counts.rounds += epoch->rounds.count();
    counts.streams += epoch->streams.count();
  }
}

}  // namespace muster::core
