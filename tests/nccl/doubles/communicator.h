#pragma once

#include <netinet/in.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl/doubles/cuda_access.h"
#include "nccl/doubles/nccl_types.h"
#include "nccl/doubles/peers.h"
#include "nccl/doubles/red_ops.h"
#include "nccl/doubles/socket.h"

namespace nccl_double {

/// What each rank tells all others over the ring.
struct Member {
  sockaddr_in address{};
  std::uint64_t host_hash = 0;
  Uuid uuid{};
};

/// What makes a communicator, beside the others of it.
struct Place {
  int rank = 0;
  int rank_count = 0;
  OwnDevice own_device;
  bool is_blocking = true;
  Magic magic{};
};

/// A communicator of this process. What waits for others does so in threads of it, or in those of
/// streams; `stop` ends all that, `stop_operations` what streams wait for. It is never freed, since
/// a test may use its handle after its end; what it holds is.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  explicit Communicator(const Place& place);

  const Place place;
  Cancel stop;
  Cancel stop_operations;

  // Written before the communicator is ready, by the thread that makes it.
  Peers peers;
  std::vector<Member> members;
  Socket next;      ///< of the ring by which members tell each other of themselves
  Socket previous;  ///< the same
  Listener for_root;

  // Of what runs on streams, one after the other. Made by the first operations that need them.
  Socket data_next;
  Socket data_previous;
  struct Lane {
    Socket socket;
    std::uint64_t number = 0;
  };
  std::vector<Lane> lanes_out;  ///< by the rank of the peer
  std::vector<Lane> lanes_in;
  std::uint64_t collective_number = 0;

  std::atomic<std::uint64_t> child_count{0};
  RedOps red_ops;

  /// The asynchronous result: 7 while something goes on in the background, an error for good, else
  /// what the network has met.
  int result() const;
  void set_result(int result);

  /// What a call that needs a communicator in order has to give, 0 if it is.
  int refusal() const;
  /// Why collectives are refused before they are looked at.
  int refusal_of_revoked() const;
  bool is_gone() const { return is_gone_; }
  void set_ready() { is_ready_ = true; }
  /// Stops operations, for good; none of them changes the result from now on.
  void revoke();
  void set_finalized() { is_finalized_ = true; }
  bool is_finalized() const { return is_finalized_; }

  /// Something goes on in the background from now on, which `abort_work` makes end soon. A
  /// communicator that is not blocking has the result in_progress meanwhile.
  void begin_work(std::function<void()> abort_work);
  /// It is over, and this came of it.
  void end_work(int result);
  /// Whatever waits for others ends, for good.
  void stop_all();

  /// Operations take turns in the order in which they were issued. `launch` gives 0 if there will
  /// be a turn.
  int issue(const std::function<int(std::uint64_t ticket)>& launch);
  /// Does the work when it is its turn, unless operations were stopped.
  void take_turn(std::uint64_t ticket, const std::function<void()>& work);
  /// All that were issued; false: `stop` was first.
  bool wait_for_operations();
  /// Those that have begun, after `stop_operations`.
  void wait_for_running_operations();
  void fail_operation(int result);
  /// An operation goes no further, until it is stopped.
  void stick() const;

  /// Ends everything; false if that was done before.
  bool abort();
  bool destroy();

 private:
  bool take_end();
  void wait_for_background();
  void close();
  void leak();

  std::atomic<int> result_{success};
  std::atomic<int> network_result_{success};
  std::atomic<bool> is_ready_{false};
  std::atomic<bool> is_gone_{false};
  std::atomic<bool> is_revoked_{false};
  std::atomic<bool> is_finalized_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  int background_ = 0;  ///< what goes on there
  std::function<void()> abort_work_;
  std::uint64_t issued_ = 0;
  std::uint64_t served_ = 0;
  int running_ = 0;
};

using CommunicatorPointer = std::shared_ptr<Communicator>;

/// Makes one, known by its handle from now on.
CommunicatorPointer make_communicator(const Place& place);
/// That of a handle; null for null. A handle that is none ends the process.
CommunicatorPointer find_communicator(const void* handle);

}  // namespace nccl_double
