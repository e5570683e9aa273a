#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "client/protocol/group_state.h"
#include "process.h"
#include "wire/reply.h"

namespace muster::sim {

/// One process's place in one group: joins, passes rounds, sends and receives objects, regroups
/// when somebody is lost or has left, leaves, comes again. What it cannot know, it recovers.
class GroupWork {
 public:
  GroupWork(Process& process, const GroupPlan& group, std::uint32_t rank);

  void begin();
  void session_ended();
  void told(const wire::Event& event);
  /// Out of the group, then.
  void leave(std::function<void()> then);
  const std::string& group_name() const { return group_.name; }
  std::uint64_t joins_made() const { return joins_made_; }
  /// Whether there is a handle, or a call that may give one, or end the membership.
  bool may_be_member() const {
    return state_ != nullptr || joins_count_ + leaves_count_ + second_joins_count_ != 0;
  }

 private:
  using Reply = Process::Reply;
  using Use = std::function<void(const Reply& reply, protocol::Fate fate)>;

  void next();
  void next_soon(Duration longest);
  void join();
  void joined_without_handle(const Reply& reply);
  void regroup();
  void recover();
  void round();
  void round_ended(std::uint64_t round, Instant begun, const Reply& reply, protocol::Fate fate);
  void cancel_round_perhaps(std::uint64_t round, std::uint64_t call);
  void interrupt();
  void send();
  void receive();
  void go();
  void destroy_handle();
  void destroy_handle_some_time();
  void haunt();
  void look_at_members();
  void expire();
  void note_gone(const Error& error);
  void cancel_regroup_perhaps(std::uint64_t attempt, std::uint64_t call);

  void formed(const Reply& reply, bool keeps_ranks);
  /// What the error of any call means for the handle.
  void learn(const Error& error);
  sim::RoundCall round_call(std::uint64_t round);
  std::uint64_t ask(const std::string& what, const wire::RequestBody& body, Duration timeout,
                    std::uint64_t round, Use use);
  void cancel_perhaps(std::uint64_t call, std::uint64_t one_in = 12);

  Town& town() { return process_.town(); }
  GroupModel& model() { return process_.town().oracle.groups; }
  Random& random() { return process_.town().random; }
  GroupModel::Place place() const;
  Duration patience();

  Process& process_;
  const GroupPlan& group_;
  std::uint32_t rank_;  ///< that it asks for
  std::string id_;      ///< of the group, with its namespace
  std::unique_ptr<protocol::GroupState> state_;
  std::uint64_t incarnation_ = 0;  ///< to which the epoch belongs
  std::uint64_t life_ = 0;         ///< counts handles, so that late answers are known as such
  std::optional<GroupModel::Place> before_;  ///< of an older handle
  std::set<std::uint32_t> gone_;             ///< ranks, as it was told
  bool is_busy_ = false;
  bool is_standby_ = false;
  std::uint64_t joins_made_ = 0;
  int joins_count_ = 0;         ///< that wait, but for the second ones
  int second_joins_count_ = 0;  ///< that wait
  int leaves_count_ = 0;        ///< of handles that are gone, without an answer
  bool needs_regroup_ = false;
  bool interruption_in_doubt_ = false;
  int failed_regroups_ = 0;
  std::function<void()> leaving_;
};

}  // namespace muster::sim
