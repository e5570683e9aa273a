#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "../scheduler.h"

namespace muster::sim::job {

/// Two ends that send to each other: what is sent arrives in its order, some time later. What comes
/// down while it is cut waits for its end and then comes in the order of the requests, as a client
/// asks anew that has reconnected.
class Wire {
 public:
  using What = std::function<void()>;

  Wire(Scheduler& scheduler, Random& random, Duration delay_max)
      : scheduler_(scheduler), random_(random), delay_max_(delay_max) {}

  void up(What what) {
    last_up_ = std::max(last_up_, std::max(scheduler_.now(), cut_until_) + delay());
    scheduler_.at(last_up_, std::move(what));
  }
  /// request  that is answered
  void down(std::uint64_t request, What what) {
    if (is_cut()) {
      held_.emplace_back(request, std::move(what));
    } else {
      send_down(std::move(what));
    }
  }
  void down(What what) { down(0, std::move(what)); }

  void cut(Duration duration) {
    cut_until_ = std::max(cut_until_, scheduler_.now() + duration);
    scheduler_.at(cut_until_, [this] { heal(); });
  }
  bool is_cut() const { return scheduler_.now() < cut_until_; }
  /// Whether what is held comes in another order than it was sent.
  bool has_reordered() const { return has_reordered_; }

 private:
  Duration delay() { return random_.between(Duration(10), delay_max_); }

  void send_down(What what) {
    last_down_ = std::max(last_down_, scheduler_.now() + delay());
    scheduler_.at(last_down_, std::move(what));
  }

  void heal() {
    if (is_cut()) return;
    const auto is_before = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(held_.begin(), held_.end(), is_before)) has_reordered_ = true;
    std::stable_sort(held_.begin(), held_.end(), is_before);
    for (auto& [request, what] : held_) send_down(std::move(what));
    held_.clear();
  }

  Scheduler& scheduler_;
  Random& random_;
  const Duration delay_max_;
  Instant last_up_{};
  Instant last_down_{};
  Instant cut_until_{};
  std::vector<std::pair<std::uint64_t, What>> held_;
  bool has_reordered_ = false;
};

}  // namespace muster::sim::job
