#include "core/groups/epoch.h"

#include <string>
#include <utility>

#include "core/session/failure.h"
#include "core/session/reply.h"

namespace muster::core {
namespace {

/// So many are told of one by one when they are lost or leave. After that they are gathered, since
/// each is told to all: when half of a large group goes, nobody is told of it thousands of times.
constexpr std::size_t told_at_once_max = 8;
constexpr Duration gathered_for = std::chrono::milliseconds(100);

}  // namespace

Epoch::Epoch(EngineServices& its_services, Recorder recorder, Account& its_account,
             Objects& objects, const std::string& group_name, std::uint64_t number,
             Duration data_expiration)
    : services(its_services),
      account(its_account),
      roster(its_services, recorder, group_name, number),
      shelf(its_services, account.quota, objects, expiry, roster),
      rounds(its_services, account.quota, roster, shelf),
      streams(its_services, account.quota, roster, shelf),
      tallied_(its_services.counted().held.epochs) {
  roster.data_expiration = data_expiration;
  ++account.epochs_count;
}

Epoch::~Epoch() { --account.epochs_count; }

Member& Epoch::add(Session& session, Payload info, HeldBytes record) {
  session.members.reserve(session.members.size() + 1);
  Member& member = roster.members.emplace_back(*this, roster, roster.world_size(), session);
  member.info = std::move(info);
  member.record = std::move(record);
  session.members.push_back(&member);
  ++roster.live_count;
  ++roster.reference_count;
  return member;
}

void Epoch::complete() {
  roster.index_sessions();
  const ProcessId hosting = services.options().host.process.id;
  if (hosting == ProcessId{}) return;
  for (const Member& member : roster.members) {
    if (member.process.id != hosting) continue;
    roster.hosting_rank = member.rank;
    break;
  }
}

void Epoch::lose(Member& member, LossCause cause, const Error* why) {
  member.cause = cause;
  services.counted().tallies.count_lost_rank(cause);
  roster.lost.push_back(member.rank);
  member.silence_at_end = services.silence(*member.session);
  member.standing = Standing::lost;
  --roster.live_count;
  record_loss(member, why);
  if (member.session->ended) member.unlink();

  if (roster.lost.size() == 1) {  // from then on nothing new waits
    roster.broken_at = services.now();
    ++services.counted().tallies.epochs_broken;
    const Failure failure = roster.loss(account.quota);
    rounds.break_off(failure);
    streams.ends.close(failure);
  }
  rounds.member_gone(member);
  tell_of_one_more(roster.lost.size());
}

/// Who may know of the session may know who has ended it; who may know of the group, may not.
void Epoch::record_loss(const Member& member, const Error* why) const {
  if (why == nullptr) return roster.record(GroupEventKind::rank_lost, nullptr, &member);
  Error told = *why;
  if (member.session->tenant() != roster.tenant) told.decided_by = "an operator";
  roster.record(GroupEventKind::rank_lost, &told, &member);
}

void Epoch::leave(Member& member) {
  roster.left.push_back(member.rank);
  member.silence_at_end = services.silence(*member.session);
  member.standing = Standing::left;
  --roster.live_count;
  roster.record(GroupEventKind::rank_left, nullptr, &member);
  member.unlink();

  if (rounds.undecided() != nullptr) rounds.decide_failed(roster.leave_error());
  streams.ends.member_left(member);
  rounds.member_gone(member);
  // In a broken epoch nobody waits for anybody any more.
  if (!roster.broken()) tell_of_one_more(roster.left.size());
}

void Epoch::interrupt(const RequestContext& context, Member& member,
                      const wire::Interrupt& request) {
  // The answer to the last one did not arrive.
  if (request.number == member.interruptions.count && request.number != 0) {
    const auto round = static_cast<std::int64_t>(member.interruptions.failed_round);
    return services.answer(context, answer_of(wire::NumberReply{round}));
  }
  if (request.number != member.interruptions.count + 1) {
    Error gap = roster.error(ErrorCode::sequence_gap, "interruptions are called in their order");
    gap.expected = member.interruptions.count + 1;
    gap.actual = request.number;
    return services.fail(context, std::move(gap));
  }
  if (roster.broken()) return services.answer(context, answer_of_failure(loss(), {}));
  const std::uint32_t reason_bytes_max = services.options().limits.key_bytes_max;
  if (request.reason.size() > reason_bytes_max) {
    return services.fail(context, too_large("the reason", request.reason.size(), "bytes",
                                            reason_bytes_max, "key_bytes_max"));
  }
  Error why = roster.error(ErrorCode::interrupted, std::string(request.reason));
  roster.blame(why, member);
  const std::uint64_t round = rounds.interrupt(context, member, why);
  if (round == 0) return;
  member.interruptions.count = request.number;
  member.interruptions.failed_round = round;
  member.interruptions.last = make_failure(account.quota, why);
  services.answer(context, answer_of(wire::NumberReply{static_cast<std::int64_t>(round)}));
  streams.ends.interrupted(member);
  if (interruption_.epoch == roster.epoch && interruption_.error.round == round) return;  // known
  interruption_ = {wire::EventKind::interrupted, roster.epoch, std::move(why)};
  interruption_.error.round = round;
  tell_all(interruption_);
}

void Epoch::close() {
  const Failure over = make_failure(
      account.quota, roster.error(ErrorCode::stale_epoch, "the group has formed anew"));
  rounds.close(over);
  streams.ends.close(over);
  telling.disarm();
  abandoned.disarm();
}

void Epoch::tell_of_one_more(std::size_t count) {
  // The first loss is told in any case, and as many more as the event may tell.
  const bool may_tell = count == 1 || services.effects().work_left() > 0;
  if (count <= told_at_once_max && may_tell) return tell_who_is_gone();
  if (!telling.armed()) services.timers().arm(telling, services.now() + gathered_for);
}

void Epoch::tell_who_is_gone() {
  wire::Event event;
  event.epoch = roster.epoch;
  event.kind = roster.broken() ? wire::EventKind::epoch_broken : wire::EventKind::rank_left;
  event.error = roster.broken() ? roster.loss_error() : roster.leave_error();
  tell_all(event);
}

void Epoch::tell_all(const wire::Event& event) {
  auto body = std::make_shared<std::string>();
  wire::append_event(*body, event);
  const std::shared_ptr<const std::string> shared = std::move(body);
  for (const Member& member : roster.members) {
    if (member.live()) services.effects().send_event(*member.session, event.kind, shared);
  }
}

void Epoch::tell_again(const Member& member) {
  wire::Event event;
  event.epoch = roster.epoch;
  const auto tell = [&](const wire::Event& each) {
    auto body = std::make_shared<std::string>();
    wire::append_event(*body, each);
    services.effects().send_event(*member.session, each.kind, std::move(body));
  };
  const bool goes_on = member.live() && !roster.broken();
  if (goes_on && interruption_.epoch == roster.epoch) tell(interruption_);
  if (member.standing == Standing::fenced) {
    event.error = *wire::decode_error(static_cast<std::uint16_t>(roster.fenced.code),
                                      roster.fenced.body->view());
  } else if (roster.broken()) {
    event.error = roster.loss_error();
  } else if (!roster.left.empty()) {
    event.kind = wire::EventKind::rank_left;
    event.error = roster.leave_error();
  } else {
    return;
  }
  tell(event);
}

/// One at least; those that are left have their turn when the timer fires again, at once.
void Epoch::objects_expire() {
  while (Object* object = shelf.expired()) {
    services.effects().spend(1);
    if (std::holds_alternative<RoundPlace>(object->place)) {
      rounds.expired(*object);
    } else {
      streams.expired(*object);
    }
    if (services.effects().work_left() == 0) break;
  }
  shelf.rearm();
}

}  // namespace muster::core
