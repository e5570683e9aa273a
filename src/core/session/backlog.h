#pragma once

#include <deque>
#include <memory>

namespace muster::core {

/// Work that an event has decided and put off: later events do it in pieces, in the order in which
/// it was decided. Whoever asks meanwhile sees what was decided.
class Backlog {
 public:
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
  };

  bool empty() const { return jobs_.empty(); }
  void add(std::unique_ptr<Job> job) { jobs_.push_back(std::move(job)); }
  void clear() { jobs_.clear(); }

  /// Does about `work_max` steps of what there is. A job may add others.
  void work(int work_max) {
    while (work_max > 0 && !jobs_.empty()) {
      Job& job = *jobs_.front();
      const int done = job.work(work_max);
      if (done < work_max) jobs_.pop_front();
      work_max -= done;
    }
  }

 private:
  std::deque<std::unique_ptr<Job>> jobs_;
};

}  // namespace muster::core
