#include <algorithm>
#include <utility>

#include "core/groups/groups_state.h"
#include "core/session/failure.h"
#include "core/session/reply.h"

// How epochs begin and end. All seats are known when an epoch forms: those of joiners, or those of
// the callers of a regroup and of the candidates that it takes in. First the new epoch is made,
// then the old one is closed, then everybody is told, in the order of the new ranks.

namespace muster::core {
namespace {

std::vector<Seat> seats_of(const Forming& forming) {
  std::vector<Seat> seats;
  for (Joiner* const joiner : forming.joiners()) {
    seats.push_back({joiner->rank, &joiner->session, nullptr, joiner});
  }
  return seats;
}

/// A session is in one epoch of a group only, also when it was fenced in an older one.
void unlink_older(GroupsState& state, Session& session, const Roster& newest) {
  const std::vector<Member*> all = session.members;
  for (Member* member : all) {
    const Roster& roster = member->roster;
    if (roster.group != newest.group || roster.epoch == newest.epoch) continue;
    state.over.push_back(roster.epoch);
    member->unlink();
  }
}

}  // namespace

void Group::work() {
  for (;;) {
    if (formed_ && formed_->epoch.roster.live_count == 0) {
      end_epoch();
    } else if (Joiner* const joiner = joiners_.unjudged()) {
      settle(*joiner);
    } else if (!formed_) {
      if (!joiners_.forming().is_complete()) return;
      const std::vector<Seat> seats = seats_of(joiners_.forming());
      if (awaits_connection(seats)) return;
      form_epoch(seats, nullptr);
      state_.services.stranger().clear();
    } else {
      formed_->regroups.see_reach();
      const auto seats = formed_->regroups.seats_if_due();
      if (!seats || awaits_connection(*seats)) return;
      form_epoch(*seats, nullptr);
    }
  }
}

/// A joiner whose connection has ended may be dead. It comes back within the grace, or is lost by
/// then; after a loss of another kind it may take longer, and the group forms with it.
bool Group::awaits_connection(const std::vector<Seat>& seats) {
  EngineServices& services = state_.services;
  awaited_ = nullptr;
  for (const Seat& seat : seats) {
    if (seat.joiner == nullptr || seat.session->connection != 0) continue;
    const Moment& disconnected = seat.session->liveness.disconnected;
    const Instant until = services.clock().after(disconnected, services.options().limits.grace);
    if (until <= services.now()) continue;
    awaited_ = seat.session;
    services.timers().arm(awaited_until_, until);
    return true;
  }
  awaited_until_.disarm();
  return false;
}

/// returns  whether all are there, and the connections of some who joined have ended
bool Group::blame_disconnected(Error& timeout) const {
  std::optional<std::vector<Seat>> seats;
  if (formed_) {
    seats = formed_->regroups.seats_if_due();
  } else if (joiners_.forming().is_complete()) {
    seats = seats_of(joiners_.forming());
  }
  if (!seats) return false;
  for (const Seat& seat : *seats) {
    if (seat.joiner == nullptr || seat.session->connection != 0) continue;
    add_rank(timeout, seat.rank,
             [&] { return report_of(state_.services, seat.rank, *seat.session); });
  }
  if (timeout.ranks.empty()) return false;
  timeout.detail = "all ranks were there, and the connections of these have ended";
  return true;
}

/// Seat i becomes rank i. `decider`: whose deadline decided that the absent stay outside.
void Group::form_epoch(const std::vector<Seat>& seats, const Member* decider) {
  state_.services.effects().spend(seats.size());
  Epoch* const old = formed_ ? &formed_->epoch : nullptr;
  auto made = std::make_unique<Epoch>(
      state_.services, state_.recorder, origin.account, state_.objects, name_,
      state_.services.next_epoch(),
      old != nullptr ? old->roster.data_expiration : joiners_.forming().data_expiration());
  made->roster.tenant = origin.tenants.owner();
  std::vector<std::unique_ptr<Joiner>> joiners;
  for (const Seat& seat : seats) {
    if (seat.survivor != nullptr) {
      Member& member =
          made->add(*seat.session, seat.survivor->info, std::move(seat.survivor->record));
      member.previous_rank = seat.survivor->rank;
      member.from_attempt = formed_->regroups.number_for(*seat.survivor);
      member.handle.epoch = seat.survivor->handle.epoch;
      continue;
    }
    joiners.push_back(joiners_.take(*seat.joiner));
    Joiner& joiner = *joiners.back();
    made->add(*seat.session, std::move(joiner.info), std::move(joiner.record));
  }
  made->complete();
  made->group = this;
  made->roster.record(old == nullptr ? GroupEventKind::formed : GroupEventKind::regrouped);

  Chain<RegroupWait> waits;
  if (formed_) formed_->regroups.hand_over(waits);
  formed_.emplace(*this, *made, old != nullptr ? old->roster.epoch : 0);
  joiners_.forming().since.leave();
  state_.epochs.emplace(made->roster.epoch, std::move(made));
  if (old != nullptr) ++state_.services.counted().tallies.epochs_regrouped;
  if (old != nullptr) supersede(*old, seats, decider);
  for (const Seat& seat : seats) unlink_older(state_, *seat.session, formed_->epoch.roster);
  answer_members(seats, joiners, waits);
  for (Member& member : formed_->epoch.roster.members) member.look_for_handle();
  for (const auto& [arrival, joiner] : joiners_.all()) {
    if (joiner->place == Joiner::Place::claimant) judge_again(*joiner);  // ranks have moved
  }
  if (old == nullptr) return;
  for (const Member& member : old->roster.members) {
    if (member.standing == Standing::fenced) old->tell_again(member);
  }
}

/// What is left of the epoch before: those who moved on know it no more, the absent are fenced.
void Group::supersede(Epoch& old, const std::vector<Seat>& seats, const Member* decider) {
  for (const Seat& seat : seats) {
    if (seat.survivor != nullptr) seat.survivor->standing = Standing::moved;
  }
  if (decider != nullptr) {
    Error fenced = old.roster.error(ErrorCode::fenced, "the others regrouped without this rank");
    fenced.decided_by = "rank " + std::to_string(decider->rank);
    old.roster.blame(fenced, *decider);
    old.roster.fenced = make_failure(origin.account.quota, fenced);
  }
  for (Member& member : old.roster.members) {
    if (member.live()) member.standing = Standing::fenced;
  }
  old.roster.live_count = 0;
  let_go(old);
}

void Group::end_epoch() {
  Epoch& old = formed_->epoch;
  old.roster.record(GroupEventKind::ended);
  formed_.reset();
  state_.services.counted().forming_groups.enter(joiners_.forming().since, state_.services.now());
  let_go(old);
  for (const auto& [arrival, joiner] : joiners_.all()) {
    if (joiner->place != Joiner::Place::none) judge_again(*joiner);
  }
}

void Group::let_go(Epoch& old) {
  old.close();
  old.group = nullptr;
  state_.over.push_back(old.roster.epoch);
  if (const std::uint64_t dropped = old.streams.ends.dropped_count(); dropped != 0) {
    state_.services.effects().log(LogLevel::info, "group " + quoted_text(name_) + " epoch " +
                                                      std::to_string(old.roster.epoch) + ": " +
                                                      std::to_string(dropped) +
                                                      " undelivered objects were dropped");
  }
}

void Group::answer_members(const std::vector<Seat>& seats,
                           const std::vector<std::unique_ptr<Joiner>>& joiners,
                           Chain<RegroupWait>& waits) {
  std::vector<RegroupWait*> callers;
  for (RegroupWait& wait : waits) callers.push_back(&wait);
  std::stable_sort(callers.begin(), callers.end(), [](const auto* left, const auto* right) {
    return left->member.rank < right->member.rank;  // survivors keep their order
  });
  auto caller = callers.begin();
  auto joiner = joiners.begin();
  for (std::uint32_t rank = 0; rank < seats.size(); ++rank) {
    Member& member = formed_->epoch.roster.members[rank];
    const auto answer = [&](Parked& parked) {
      state_.services.answer(parked, formed_answer(member, parked.operation));
    };
    if (seats[rank].survivor == nullptr) {
      Chain<JoinWait>& joins = (*joiner++)->waits;
      while (!joins.empty()) answer(joins.first().parked);
      continue;
    }
    for (; caller != callers.end() && &(*caller)->member == seats[rank].survivor; ++caller) {
      answer((*caller)->parked);
    }
  }
}

Answer Group::formed_answer(Member& member, wire::Operation operation) const {
  const Roster& roster = member.roster;
  wire::FormedReply reply;
  reply.epoch = roster.epoch;
  reply.rank = member.rank;
  reply.world_size = roster.world_size();
  reply.hosting_rank = roster.hosting_rank;
  reply.candidates = static_cast<std::uint32_t>(joiners_.candidates().count());
  reply.data_expiration = roster.data_expiration;
  Answer answer = answer_of(reply);
  const bool of_join = operation == wire::operation<wire::Join>;
  answer.on_acknowledged = Membership{roster.epoch, of_join};
  if (of_join) member.add_claim();
  return answer;
}

}  // namespace muster::core
