#pragma once

#include <algorithm>

#include "core/memory/chain.h"

namespace muster::core {

/// Work that events have decided and put off: later events do it in pieces. Whoever asks meanwhile
/// sees what was decided. Jobs take turns, so that a long one holds up no short one.
class Backlog {
 public:
  /// A member of whom it works for; when that goes, it leaves the backlog.
  class Job {
   public:
    Job() = default;
    virtual ~Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Does some of it, about `work_max` steps.
    ///
    /// returns  how much was done; less than `work_max` when nothing is left
    virtual int work(int work_max) = 0;

   private:
    friend class Backlog;
    ChainLink<Job> place_{*this};
  };

  bool empty() const { return jobs_.empty(); }
  /// There is something to do for the job, which may be here already.
  void add(Job& job) {
    if (!job.place_.linked()) jobs_.append(job.place_);
  }

  /// Does about `work_max` steps of what there is. A job may add others.
  void work(int work_max) {
    while (work_max > 0 && !jobs_.empty()) {
      Job& job = jobs_.first();
      const int turn = std::min(work_max, work_per_turn_max);
      const int done = job.work(turn);
      if (done < turn) {
        job.place_.leave();
      } else {
        jobs_.append(job.place_);
      }
      work_max -= std::max(done, 1);
    }
  }

 private:
  static constexpr int work_per_turn_max = 64;

  Chain<Job> jobs_;
};

}  // namespace muster::core
