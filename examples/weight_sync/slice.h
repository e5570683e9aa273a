#pragma once

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "weight_sync/meeting.h"
#include "weight_sync/mover.h"
#include "weight_sync/weights.h"

namespace weight_sync {

/// The group of one tensor-parallel slice: the trainer and one process of each server.
///
/// Whoever is there is a member; ranks and size change with each epoch. One member leads: the
/// trainer, or rank 0 while there is none. The leader gives orders to all. Every call that fails
/// goes to `recover`, which returns when this process and all others that live are together again.
class Slice {
 public:
  Slice(Role role, Backend backend, Session& session, muster::StatelessProcessGroup group,
        std::size_t bucket_bytes)
      : role_(role),
        session_(session),
        group_(std::move(group)),
        mover_(std::move(backend), bucket_bytes) {}

  int server_count() const { return group_.world_size() - (has_trainer_ ? 1 : 0); }
  std::size_t bucket_bytes() const { return mover_.bucket_bytes(); }
  bool leads() const { return group_.rank() == leader_; }
  /// Of all members.
  std::uint64_t highest_version() const { return highest_version_; }

  /// After each join and regroup: all tell who they are and what they have, and connect.
  muster::Result<void> meet() {
    const Peer own{role_, version_, mover_.epoch_of_communicator(group_)};
    const auto peers = group_.all_gather_obj(own, patience);
    if (!peers) return peers.error();
    const auto trainer = std::find_if(peers->begin(), peers->end(),
                                      [](const Peer& peer) { return peer.role == Role::trainer; });
    has_trainer_ = trainer != peers->end();
    leader_ = has_trainer_ ? static_cast<int>(trainer - peers->begin()) : 0;
    for (const Peer& peer : *peers) highest_version_ = std::max(highest_version_, peer.version);
    const bool have_communicator =
        own.communicator != 0 && std::all_of(peers->begin(), peers->end(), [&](const Peer& peer) {
          return peer.communicator == own.communicator;
        });
    if (have_communicator) {
      const auto attached = mover_.attach(group_, patience);
      if (attached) std::cout << "keeps its communicator" << std::endl;
      if (attached || attached.error().code != muster::ErrorCode::mismatch) return attached;
    }
    return mover_.connect(group_, patience);
  }

  /// Comes together with all who are there, however long that takes; or returns the error, if that
  /// does not mend it.
  muster::Result<void> recover(muster::Error error) {
    for (;;) {
      std::cerr << error.message() << std::endl;
      if (!is_about_others(error) && !is_about_own_place(error)) return error;
      const bool is_out = is_about_own_place(error) ||
                          (error.code == muster::ErrorCode::rank_lost && names_me(error));
      const auto done = is_out ? come_back() : regroup();
      if (done) return done;
      error = done.error();
      std::this_thread::sleep_for(between_attempts);
    }
  }

  /// The leader's part: takes in those who wait for it.
  muster::Result<void> take_in() {
    const auto members = group_.members(patience);
    if (!members) return members.error();
    const bool has_newcomers =
        std::any_of(members->begin(), members->end(), [](const muster::MemberInfo& member) {
          return member.state == muster::MemberState::candidate;
        });
    if (!has_newcomers) return {};
    Order order;
    order.kind = Order::Kind::regroup;
    if (auto told = tell(order); !told) return told;
    return regroup();
  }
  muster::Result<void> tell(const Order& order) {
    const auto told = group_.broadcast_obj(order, muster::Rank{leader_}, patience);
    if (!told) return told.error();
    return {};
  }

  /// The others' part.
  muster::Result<Order> next_order() {
    return group_.broadcast_obj<Order>(muster::Rank{leader_}, patience_for_orders);
  }

  /// The next epoch, with those who are left and those who wait to be taken in.
  muster::Result<void> regroup() {
    mover_.disconnect();
    muster::RegroupOptions options;
    options.everyone = true;
    auto next = group_.regroup(options, patience);
    if (!next) return std::move(next).error();
    group_ = *std::move(next);
    return meet();
  }

  /// From the trainer to all.
  muster::Result<void> move(Weights& weights) { return mover_.move(weights, leader_, patience); }

  /// When it is passed, all have this version.
  muster::Result<void> pass_barrier(std::uint64_t version) {
    const auto passed = group_.barrier(patience);
    if (!passed) return passed.error();
    version_ = version;
    highest_version_ = std::max(highest_version_, version);
    return {};
  }

  /// All do so, when the end has been ordered.
  muster::Result<void> leave() {
    mover_.disconnect();
    const auto passed = group_.barrier(patience);
    const auto left = group_.leave();
    if (!passed) return passed.error();
    return left;
  }

 private:
  /// To the others, when the session is over, or this process's place among them is.
  ///
  /// When the server was restarted, nothing is lost but its memory: the same processes form the
  /// group again, each with the rank that it had, and keep the communicator.
  muster::Result<void> come_back() {
    const auto answer = group_.members(patience);
    if (!answer && !is_end_of_session(answer.error())) return answer.error();
    if (answer) {
      (void)group_.leave();  // the session lives, and what is left of this place goes
    } else if (auto opened = session_.reopen(); !opened) {
      return opened;
    }
    auto again = muster::StatelessProcessGroup::create(session_.store(), group_.name(),
                                                       group_.rank(), group_.world_size(),
                                                       waiting(session_.wait_for_same()));
    if (!again) {
      mover_.disconnect();  // whoever waits in a broadcast for one who is gone is told so
      again = join(session_, group_.name());
    }
    if (!again) return std::move(again).error();
    // A communicator needs the handle before until it is attached to the new one.
    const auto before = std::exchange(group_, *std::move(again));
    return meet();
  }

  bool names_me(const muster::Error& error) const {
    return std::any_of(error.rank_ranges.begin(), error.rank_ranges.end(),
                       [own = group_.rank()](const muster::RankRange& range) {
                         return range.first <= own && own <= range.last;
                       });
  }

  Role role_;
  Session& session_;
  muster::StatelessProcessGroup group_;
  Mover mover_;
  std::uint64_t version_ = 0;
  std::uint64_t highest_version_ = 0;
  bool has_trainer_ = false;
  int leader_ = 0;
};

}  // namespace weight_sync
