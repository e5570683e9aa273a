#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/address/socket_address.h"
#include "net/connection.h"
#include "net/listening.h"
#include "net/loop.h"
#include "net/task.h"
#include "net/timer.h"
#include "net/unique_fd.h"
#include "net/watcher.h"

namespace muster::net {

/// Accepts connections on the I/O thread, a bounded number at a time so that others get their
/// turn. While the process has no descriptor left, each newcomer takes that of somebody who may go,
/// or gets `farewell` and is closed.
class Listener final : public Watcher, private Task, public std::enable_shared_from_this<Listener> {
 public:
  struct Callbacks {
    /// Somebody came; the socket does not block.
    std::function<void(UniqueFd fd, const SocketAddress& peer)> accepted;
    /// A newcomer was sent away for want of descriptors, or accepting failed.
    std::function<void(std::string detail)> refused;
    /// Gives up a descriptor for a newcomer; false: there is none to give up.
    std::function<bool()> make_room;
  };

  static std::shared_ptr<Listener> create(Loop& loop, Listening listening, std::string farewell);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void start(Callbacks callbacks);

  void close();

  const SocketAddress& address() const { return listening_.address(); }

 private:
  Listener(Loop& loop, Listening listening, std::string farewell);

  void on_ready(std::uint32_t events) override;
  void wait();
  void accept_some();
  void go_on();
  void run() override;
  void drop() noexcept override;
  bool accept_one();
  bool is_awaited() const;
  void send_away_one(int error);
  void retry_after(Duration delay);
  void retry();

  Listening listening_;
  std::string farewell_;
  UniqueFd reserve_;  ///< given up to be able to send a newcomer away
  std::shared_ptr<Connection> leaving_;
  Timer retry_;
  Callbacks callbacks_;
  std::shared_ptr<Listener> going_on_;  ///< itself, while it is to accept more in the next turn
  std::uint64_t accepted_in_turn_ = 0;  ///< the number of that turn
  bool retry_pending_ = false;
  bool closed_ = false;
};

}  // namespace muster::net
