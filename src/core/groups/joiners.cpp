#include "core/groups/joiners.h"

#include <utility>

namespace muster::core {

void Candidates::add(Joiner& joiner) {
  if (joiner.standby) {
    standbys.emplace(joiner.arrival, &joiner);
  } else {
    by_rank.emplace(joiner.rank, &joiner);
  }
}

void Candidates::remove(const Joiner& joiner) {
  if (joiner.standby) {
    standbys.erase(joiner.arrival);
  } else {
    by_rank.erase(joiner.rank);
  }
}

Joiner& Joiners::admit(std::unique_ptr<Joiner> joiner) {
  Joiner& waiting = *joiner;
  all_.emplace(waiting.arrival, std::move(joiner));
  unjudged_.emplace(waiting.arrival, &waiting);
  of_session_.emplace(&waiting.session, &waiting);
  return waiting;
}

void Joiners::place(Joiner& joiner, Joiner::Place place, Session* holder) {
  unjudged_.erase(joiner.arrival);
  joiner.place = place;
  joiner.holder = holder;
  switch (place) {
    case Joiner::Place::none: return;
    case Joiner::Place::claimant:
      claimants_[holder].append(joiner.claim);
      ++holder->claimants;
      return;
    case Joiner::Place::candidate: return candidates_.add(joiner);
    case Joiner::Place::seat: return forming_.seat(joiner);
  }
}

void Joiners::leave_place(Joiner& joiner) {
  switch (std::exchange(joiner.place, Joiner::Place::none)) {
    case Joiner::Place::none: unjudged_.erase(joiner.arrival); return;
    case Joiner::Place::claimant: {
      joiner.claim.leave();
      --joiner.holder->claimants;
      const auto others = claimants_.find(joiner.holder);
      if (others->second.empty()) claimants_.erase(others);
      joiner.holder = nullptr;
      return;
    }
    case Joiner::Place::candidate: return candidates_.remove(joiner);
    case Joiner::Place::seat: return forming_.leave(joiner);
  }
}

void Joiners::judge_again(Joiner& joiner) {
  leave_place(joiner);
  unjudged_.emplace(joiner.arrival, &joiner);
}

void Joiners::give_up(Joiner& joiner) {
  joiner.place = Joiner::Place::none;
  forming_.give_up(joiner);
}

std::unique_ptr<Joiner> Joiners::take(Joiner& joiner) {
  leave_place(joiner);
  joiner.group = nullptr;
  of_session_.erase(&joiner.session);
  const auto place = all_.find(joiner.arrival);
  std::unique_ptr<Joiner> owned = std::move(place->second);
  all_.erase(place);
  return owned;
}

Joiner* Joiners::of(const Session& session) const {
  const auto found = of_session_.find(&session);
  return found == of_session_.end() ? nullptr : found->second;
}

}  // namespace muster::core
