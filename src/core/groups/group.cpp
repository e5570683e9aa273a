#include "core/groups/group.h"

#include "base/text.h"
#include "core/groups/groups_state.h"
#include "core/session/failure.h"

// Life of a joiner: judged by the join rules -> refused, or it gets a place: a seat of the group
// that forms, a candidate's for the next regroup, or a claimant's, whose rank has a holder that is
// silent -> judged again when that holder is heard or gone, or when the epoch's last member is
// -> its group forms: it is a member; or its deadline ends its own join and nobody else's.
//
// What one event brings about is done step by step in `work`, so that no step has to know who
// else is concerned: whoever loses a place stays unjudged until it is its turn.

namespace muster::core {
namespace {

/// What a joiner and the member that it becomes take beside its info.
constexpr std::uint64_t joiner_record_bytes =
    sizeof(Joiner) + sizeof(JoinWait) + sizeof(Member) + 256;

wire::Join request_of(const Joiner& joiner) {
  wire::Join request;
  request.rank = joiner.rank;
  request.world_size = joiner.world_size;
  request.data_expiration = joiner.data_expiration;
  request.standby = joiner.standby;
  return request;
}

}  // namespace

JoinWait::JoinWait(Joiner& its_joiner, Parked& its_parked) : Wait(its_parked), joiner(its_joiner) {
  joiner.waits.append(link);
}

JoinWait::~JoinWait() {
  if (!link.linked()) return;  // the joiner has gone before
  link.leave();
  if (joiner.waits.empty() && joiner.group != nullptr) joiner.group->give_up(joiner);
}

void JoinWait::timed_out() {
  GroupsState& state = joiner.group->state();
  joiner.group->timed_out(*this);
  state.work();
}

void JoinWait::abandoned() {
  GroupsState& state = joiner.group->state();
  joiner.group->abandoned(*this);
  state.work();
}

void JoinWait::resumed() {
  if (joiner.group->awaits(joiner.session)) joiner.group->state().touch(*joiner.group);
}

std::string JoinWait::target() const {
  return "group " + quoted_text(joiner.group->name()) + " rank " + std::to_string(joiner.rank) +
         " of " + std::to_string(joiner.world_size);
}

Joiner::~Joiner() {
  while (!waits.empty()) waits.first().link.leave();
}

Group::Group(GroupsState& state, Account& account, std::string name, GroupTenants tenants)
    : origin(account, std::move(tenants), state.services.counted().held.groups),
      state_(state),
      name_(std::move(name)),
      joiners_(state.claimants) {
  state_.services.counted().forming_groups.enter(joiners_.forming().since, state_.services.now());
}

Group::~Group() = default;

JoinRules Group::rules() const {
  return {state_.services, name_, formed_ ? &formed_->epoch : nullptr, joiners_};
}

bool Group::is_known_to(const Viewer& viewer) const {
  if (viewer.session() == nullptr) return true;
  return formed_ ? formed_->epoch.roster.is_known_to(*viewer.session())
                 : viewer.may_see(origin.tenants.owner());
}

void Group::join(const RequestContext& context, const wire::Join& request) {
  const GroupTenants given(context.session.tenant(), request.other_tenants);
  const bool is_same = given.is_same_as(origin.tenants);
  const auto other_tenants = [&] {
    return rules().mismatch_error("tenants are " + origin.tenants.text() + ", not " + given.text());
  };
  Verdict verdict =
      is_same ? rules().judge(context.session, request) : Verdict::refusal(other_tenants());
  switch (verdict.kind) {
    case Verdict::Kind::refuse:
      record(*this, GroupEventKind::join_refused, verdict.error, &context.session.process);
      return state_.services.fail(context, std::move(verdict.error));
    case Verdict::Kind::same_answer:
      return state_.services.answer(context, formed_answer(*verdict.member, context.operation));
    case Verdict::Kind::regroup:
      return formed_->regroups.join(context, *verdict.member, request.world_size);
    case Verdict::Kind::attach: return attach(context, *verdict.joiner);
    default: return admit(context, request);
  }
}

/// Gives an unjudged joiner what the rules say, or takes one step towards it.
void Group::settle(Joiner& joiner) {
  const Verdict verdict = rules().judge(joiner.session, request_of(joiner));
  switch (verdict.kind) {
    case Verdict::Kind::displace_member: return lose(*verdict.member, LossCause::restarted);
    case Verdict::Kind::displace_joiner:
      return fail(*verdict.joiner, rules().in_use_error(joiner.session, joiner.rank));
    case Verdict::Kind::refuse: return fail(joiner, verdict.error);
    case Verdict::Kind::seat: return joiners_.place(joiner, Joiner::Place::seat);
    case Verdict::Kind::candidate:
      joiners_.place(joiner, Joiner::Place::candidate);
      return formed_->regroups.candidate_came();
    default: return joiners_.place(joiner, Joiner::Place::claimant, verdict.holder);
  }
}

std::vector<const Joiner*> Group::candidates() const {
  std::vector<const Joiner*> candidates;
  for (const auto& [arrival, joiner] : joiners_.all()) {
    if (joiner->place == Joiner::Place::candidate) candidates.push_back(joiner.get());
  }
  return candidates;
}

void Group::admit(const RequestContext& context, const wire::Join& request) {
  auto joiner = std::make_unique<Joiner>(*this, context.session, request);
  Quota& quota = context.session.account.quota;
  joiner->info = make_payload(quota, request.info, Charging::reserve);
  const std::uint64_t record_bytes = joiner_record_bytes + origin.tenants.bytes();
  if (joiner->info == nullptr || !joiner->record.add(quota, record_bytes)) {
    const std::uint64_t bytes = record_bytes + request.info.size();
    return state_.services.fail(context, memory_exhausted(quota, bytes));
  }
  Parked* parked = state_.services.park(context);
  if (parked == nullptr) return;
  joiner->arrival = ++state_.last_arrival;
  Joiner& waiting = joiners_.admit(std::move(joiner));
  parked->wait = std::make_unique<JoinWait>(waiting, *parked);
}

void Group::attach(const RequestContext& context, Joiner& joiner) {
  Parked* parked = state_.services.park(context);
  if (parked != nullptr) parked->wait = std::make_unique<JoinWait>(joiner, *parked);
}

void Group::judge_again(Joiner& joiner) {
  joiners_.judge_again(joiner);
  state_.touch(*this);
}

std::unique_ptr<Joiner> Group::give_up(Joiner& joiner) {
  if (joiner.place == Joiner::Place::candidate) formed_->regroups.candidate_gone(joiner);
  state_.touch(*this);
  return joiners_.take(joiner);
}

void Group::fail(Joiner& joiner, const Error& error) {
  record(*this, GroupEventKind::join_refused, error, &joiner.session.process);
  const std::unique_ptr<Joiner> owned = give_up(joiner);
  while (!owned->waits.empty()) state_.services.fail(owned->waits.first().parked, error);
}

void Group::timed_out(JoinWait& wait) {
  Joiner& joiner = wait.joiner;
  const Session& session = joiner.session;
  Error error = timeout_error(joiner);
  record(*this, GroupEventKind::join_timed_out, error, nullptr);
  const bool last = &joiner.waits.first() == &joiner.waits.last();
  // It has been there: nobody who waits on is told that it never came.
  if (last && joiner.place == Joiner::Place::seat) joiners_.give_up(joiner);
  state_.services.fail(wait.parked, std::move(error));
  state_.reconsider(session);
}

/// The deadline of a joiner has passed: what did it wait for?
Error Group::timeout_error(const Joiner& joiner) {
  Error timeout = rules().error(ErrorCode::timed_out, "");
  if (joiner.place != Joiner::Place::claimant && blame_disconnected(timeout)) return timeout;
  if (joiner.place == Joiner::Place::candidate) {
    timeout.detail = "these members have not regrouped";
    formed_->regroups.blame_missing(timeout);
  } else if (joiner.place == Joiner::Place::claimant) {
    timeout.detail = "the rank's holder is silent but not declared lost yet";
    add_rank(timeout, joiner.rank,
             [&] { return report_of(state_.services, joiner.rank, *joiner.holder); });
  } else {
    joiners_.forming().blame_absent(timeout);
    tell_of_earlier_epochs(timeout);
    tell_of_mismatch(timeout, joiner.waits.first().parked.received);
    const std::string& stranger = state_.services.stranger();
    if (!stranger.empty()) timeout.detail += "; " + stranger;
  }
  return timeout;
}

/// Of ranks that are missing, and were members before: an epoch may have formed with a process that
/// was about to be lost.
void Group::tell_of_earlier_epochs(Error& timeout) const {
  constexpr int told_max = 4;
  int told_count = 0;
  for (RankReport& report : timeout.ranks) {
    if (told_count == told_max) break;
    auto end = state_.recorder.last_end(name_, origin.tenants.owner(), report.rank);
    if (!end) continue;
    const bool was_lost = end->what == GroupEventKind::rank_lost;
    timeout.detail += "; rank " + std::to_string(report.rank) +
                      (was_lost ? " was lost in epoch " : " has left epoch ") +
                      std::to_string(end->epoch) + " and has not joined again";
    report = std::move(end->report);
    ++told_count;
  }
}

/// A rank may be missing because its join was refused during this wait.
void Group::tell_of_mismatch(Error& timeout, Instant since) const {
  const auto refused = state_.recorder.last_mismatch(name_, origin.tenants.owner(), since);
  if (!refused) return;
  timeout.detail += "; the join of " + describe(refused->process) + " was refused " +
                    base::rounded(state_.services.now() - refused->last) + " ago: " + refused->why;
}

void Group::abandoned(JoinWait& wait) {
  const Session& session = wait.joiner.session;
  wait.parked.wait.reset();
  state_.reconsider(session);
}

void Group::lose(Member& member, LossCause cause, const Error* why) {
  formed_->epoch.lose(member, cause, why);
  if (!formed_->among_broken) {
    Counted& counted = state_.services.counted();
    formed_->among_broken.emplace(counted.group_states.broken);
    counted.broken_groups.enter(formed_->broken_place, state_.services.now());
  }
  formed_->regroups.departed(member);
}

void Group::leave(Member& member) {
  formed_->epoch.leave(member);
  formed_->regroups.departed(member);
}

void Group::regroup_deadline(const Member& decider, Duration timeout) {
  // All are there, and it waits for the connection of a candidate.
  if (const auto seats = formed_->regroups.seats_if_due()) return form_epoch(*seats, nullptr);
  if (const auto seats = formed_->regroups.seats_at_deadline(decider, timeout)) {
    form_epoch(*seats, &decider);
  }
}

void record(const Group& group, GroupEventKind what, const Error& why, const ProcessInfo* process) {
  const wire::GroupEntry now = group.summary();
  group.state().recorder.record({what, group.name(), group.origin.tenants.owner(), now.epoch,
                                 now.world_size, &why, nullptr, process});
}

}  // namespace muster::core
