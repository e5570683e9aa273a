#include "core/group.h"

#include "core/failure.h"

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

}  // namespace

JoinWait::JoinWait(Joiner& its_joiner, Parked& its_parked) : Wait(its_parked), joiner(its_joiner) {
  joiner.waits.append(link);
}

JoinWait::~JoinWait() {
  if (!link.linked()) return;  // the joiner has gone before
  link.leave();
  if (joiner.waits.empty() && joiner.group != nullptr) joiner.group->forget(joiner);
}

void JoinWait::timed_out() {
  GroupRoom& room = joiner.group->room();
  joiner.group->timed_out(*this);
  room.work();
}

void JoinWait::abandoned() {
  GroupRoom& room = joiner.group->room();
  joiner.group->abandoned(*this);
  room.work();
}

std::string JoinWait::target() const {
  return "group " + quoted(joiner.group->name()) + " rank " + std::to_string(joiner.rank) + " of " +
         std::to_string(joiner.world_size);
}

Joiner::~Joiner() {
  while (!waits.empty()) waits.first().link.leave();
}

Group::Group(GroupRoom& room, std::string name) : room_(room), name_(std::move(name)) {}

Group::~Group() = default;

Joiner* Group::joiner_of(const Session& session) const {
  const auto place = joiner_of_.find(&session);
  return place == joiner_of_.end() ? nullptr : place->second;
}

std::vector<const Joiner*> Group::candidates() const {
  std::vector<const Joiner*> candidates;
  for (const auto& [arrival, joiner] : joiners_) {
    if (joiner->place == Joiner::Place::candidate) candidates.push_back(joiner.get());
  }
  return candidates;
}

void Group::admit(const RequestContext& context, const wire::Join& request) {
  auto joiner = std::make_unique<Joiner>(*this, context.session, request);
  joiner->info = make_payload(room_.quota, request.info);
  if (joiner->info == nullptr || !joiner->record.add(room_.quota, joiner_record_bytes)) {
    const std::uint64_t bytes = joiner_record_bytes + request.info.size();
    return room_.host.fail(context, memory_exhausted(room_.host, room_.quota, bytes));
  }
  Parked* parked = room_.host.park(context);
  if (parked == nullptr) return;
  joiner->arrival = ++room_.last_arrival;
  Joiner& waiting = *joiner;
  joiners_.emplace(waiting.arrival, std::move(joiner));
  unjudged_.emplace(waiting.arrival, &waiting);
  joiner_of_.emplace(&context.session, &waiting);
  parked->wait = std::make_unique<JoinWait>(waiting, *parked);
}

void Group::attach(const RequestContext& context, Joiner& joiner) {
  Parked* parked = room_.host.park(context);
  if (parked != nullptr) parked->wait = std::make_unique<JoinWait>(joiner, *parked);
}

void Group::take_place(Joiner& joiner, Joiner::Place place) {
  joiner.place = place;
  switch (place) {
    case Joiner::Place::none: return;
    case Joiner::Place::claimant:
      room_.claimants[joiner.holder].append(joiner.claim);
      ++joiner.holder->claimants;
      return;
    case Joiner::Place::candidate:
      if (joiner.standby) {
        standbys_.emplace(joiner.arrival, &joiner);
      } else {
        rank_candidates_.emplace(joiner.rank, &joiner);
      }
      return;
    case Joiner::Place::seat:
      if (seats_.empty()) {
        world_size_ = joiner.world_size;
        data_expiration_ = joiner.data_expiration;
      }
      if (!seats_.contains(joiner.rank)) never_joined_.clear();
      seats_[joiner.rank] = &joiner;
      ++seated_count_;
      return;
  }
}

void Group::leave_place(Joiner& joiner) {
  switch (std::exchange(joiner.place, Joiner::Place::none)) {
    case Joiner::Place::none: unjudged_.erase(joiner.arrival); return;
    case Joiner::Place::claimant: {
      joiner.claim.leave();
      --joiner.holder->claimants;
      const auto others = room_.claimants.find(joiner.holder);
      if (others->second.empty()) room_.claimants.erase(others);
      joiner.holder = nullptr;
      return;
    }
    case Joiner::Place::candidate:
      if (joiner.standby) {
        standbys_.erase(joiner.arrival);
      } else {
        rank_candidates_.erase(joiner.rank);
      }
      return;
    case Joiner::Place::seat:
      seats_.erase(joiner.rank);
      never_joined_.clear();
      if (--seated_count_ == 0) seats_.clear();
      return;
  }
}

void Group::judge_again(Joiner& joiner) {
  leave_place(joiner);
  unjudged_.emplace(joiner.arrival, &joiner);
  room_.touch(*this);
}

/// Takes it out of the group; its waits are the caller's to answer.
std::unique_ptr<Joiner> Group::take(Joiner& joiner) {
  leave_place(joiner);
  joiner.group = nullptr;
  joiner_of_.erase(&joiner.session);
  const auto place = joiners_.find(joiner.arrival);
  std::unique_ptr<Joiner> owned = std::move(place->second);
  joiners_.erase(place);
  room_.touch(*this);
  return owned;
}

void Group::forget(Joiner& joiner) { take(joiner); }

void Group::fail(Joiner& joiner, const Error& error) {
  const std::unique_ptr<Joiner> owned = take(joiner);
  while (!owned->waits.empty()) room_.host.fail(owned->waits.first().parked, error);
}

void Group::timed_out(JoinWait& wait) {
  Joiner& joiner = wait.joiner;
  const Session& session = joiner.session;
  Error error = timeout_error(joiner);
  const bool last = &joiner.waits.first() == &joiner.waits.last();
  if (last && joiner.place == Joiner::Place::seat) {
    // It has been there: nobody who waits on is told that it never came.
    joiner.place = Joiner::Place::none;
    seats_[joiner.rank] = nullptr;
    if (--seated_count_ == 0) seats_.clear();
  }
  room_.host.fail(wait.parked, std::move(error));
  room_.reconsider(session);
}

void Group::abandoned(JoinWait& wait) {
  const Session& session = wait.joiner.session;
  wait.parked.wait.reset();
  room_.reconsider(session);
}

}  // namespace muster::core
