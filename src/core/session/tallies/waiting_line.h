#pragma once

#include "base/time.h"
#include "core/memory/chain.h"

namespace muster::core {

using base::Instant;

/// How long the first of some objects has been where it is. They stand in the order in which they
/// came, so it costs no search; nothing is allocated, so it may happen while memory is out. Where
/// objects come and go by the thousand, `Ages` costs less.
class WaitingLine {
 public:
  /// One of them, a member of it. It goes when it is destroyed.
  class Place {
   public:
    void leave() { link_.leave(); }

   private:
    friend class WaitingLine;
    ChainLink<Place> link_{*this};
    Instant since_{};
  };

  /// `now` is not before that of the last one.
  void enter(Place& place, Instant now) {
    place.since_ = now;
    places_.append(place.link_);
  }
  /// Zero when there is none.
  Duration oldest(Instant now) const {
    return places_.empty() ? Duration::zero() : now - places_.first().since_;
  }

 private:
  Chain<Place> places_;
};

}  // namespace muster::core
