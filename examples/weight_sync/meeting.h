#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "muster/process_group.h"

// How the processes of a slice find each other, whoever of them begins, dies or comes back.

namespace weight_sync {

/// For what all do at once. Nobody waits so long for one who is dead: the store tells of a loss.
inline constexpr std::chrono::seconds patience{60};
/// For the next version: a training step takes as long as it takes.
inline constexpr std::chrono::hours patience_for_orders{24};
/// For others to come to where this process waits; then it looks anew who is there. After a restart
/// of musterd all stores know of it within 1.5 s, so that all processes meet in this time.
inline constexpr std::chrono::seconds wait_for_others{2};
inline constexpr std::chrono::milliseconds between_attempts{50};

enum class Role : std::uint8_t { trainer, server };

/// What each process tells the others when they have met.
struct Peer {
  Role role = Role::server;
  std::uint64_t version = 0;       ///< of the weights that it has; 0: none
  std::uint64_t communicator = 0;  ///< the epoch in which it was made; 0: it has none to keep

  template <class Archive>
  void serialize(Archive& archive) {
    archive(role, version, communicator);
  }
};

/// Whether other members are gone, or failed: those who are there regroup.
inline bool is_about_others(const muster::Error& error) {
  using muster::ErrorCode;
  switch (error.code) {
    case ErrorCode::rank_lost:
    case ErrorCode::rank_left:
    case ErrorCode::aborted:
    case ErrorCode::timed_out:
    case ErrorCode::collective_mismatch:
    case ErrorCode::nccl:
    case ErrorCode::gloo: return true;
    default: return false;
  }
}

/// Whether this process's session is over, and with it its place in all groups.
inline bool is_end_of_session(const muster::Error& error) {
  using muster::ErrorCode;
  return error.code == ErrorCode::server_restarted || error.code == ErrorCode::session_expired ||
         error.code == ErrorCode::fenced;
}

/// Whether this process has to find the others again: its session is over, or its place in the
/// group is, or the server does not answer.
inline bool is_about_own_place(const muster::Error& error) {
  using muster::ErrorCode;
  return is_end_of_session(error) || error.code == ErrorCode::unavailable ||
         error.code == ErrorCode::suspended || error.code == ErrorCode::outcome_unknown ||
         error.code == ErrorCode::closed || error.code == ErrorCode::stale_epoch;
}

/// This process's connection to musterd, which carries all its groups.
class Session {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Session(muster::Store store)
      : store_(std::move(store)), incarnation_(store_.incarnation()) {}

  muster::Store& store() { return store_; }

  /// Begins a new one, if it is over.
  muster::Result<void> reopen() {
    auto opened = store_.reopen(patience);
    if (opened && store_.incarnation() != incarnation_) {
      incarnation_ = store_.incarnation();
      wait_ends_ = Clock::now() + wait_for_others;
    }
    return opened;
  }

  /// How long to wait for those with whom this process was before musterd was restarted. The time
  /// is one for all groups, or one who is missing in the first would be waited for in each.
  muster::Duration wait_for_same() const {
    const auto left = std::chrono::duration_cast<muster::Duration>(wait_ends_ - Clock::now());
    return std::max<muster::Duration>(left, between_attempts);
  }

 private:
  muster::Store store_;
  std::uint64_t incarnation_;
  Clock::time_point wait_ends_;
};

inline muster::GroupOptions waiting(muster::Duration timeout = wait_for_others) {
  muster::GroupOptions options;
  options.timeout = timeout;
  options.standby = true;
  return options;
}

/// Into the group of this name: with those who are there, when they regroup with everyone; where
/// nobody is, as the first one.
inline muster::Result<muster::StatelessProcessGroup> join(Session& session,
                                                          const std::string& name) {
  using muster::ErrorCode;
  using muster::StatelessProcessGroup;
  for (;;) {
    auto group = StatelessProcessGroup::create(session.store(), name, 0, 1, waiting());
    if (!group && group.error().code == ErrorCode::rank_in_use) {
      constexpr int rank_of_nobody = 1000;  // those who are there decide which one it gets
      group = StatelessProcessGroup::create(session.store(), name, rank_of_nobody,
                                            rank_of_nobody + 1, waiting());
    }
    if (group) return group;
    // The others form their group just now, or have gone, or do something else for a while.
    const bool may_pass = group.error().code == ErrorCode::timed_out ||
                          group.error().code == ErrorCode::rank_in_use ||
                          group.error().code == ErrorCode::group_mismatch ||
                          is_about_own_place(group.error());
    if (!may_pass) return group;
    std::this_thread::sleep_for(between_attempts);
    if (is_end_of_session(group.error())) (void)session.reopen();
  }
}

}  // namespace weight_sync
