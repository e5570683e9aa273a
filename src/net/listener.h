#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/log.h"
#include "muster/result.h"
#include "net/address.h"
#include "net/asio.h"
#include "net/connection.h"
#include "net/loop.h"
#include "net/socket_address.h"
#include "net/unique_fd.h"

namespace muster::net {

/// A socket that listens, before it is served.
struct Listening {
  UniqueFd fd;
  SocketAddress address;    ///< as bound, port filled in
  std::string remove_path;  ///< of a Unix socket: removed when the listener closes
};

struct ListenOptions {
  int backlog = 65535;
  bool allow_unauthenticated = false;
};

/// Binds and listens at everything that `addresses` name: all addresses of a host name, all of
/// this machine for an empty host. Nothing is bound when one of them may not be.
///
/// Blocks for name look-ups.
///
/// errors  invalid_argument, address_in_use (where), permission_denied, unavailable
Result<std::vector<Listening>> listen_at(const std::vector<std::string>& addresses,
                                         const ListenOptions& options);

/// Takes over a socket that somebody else has made, in any case.
///
/// errors  invalid_argument (no listening stream socket), permission_denied
Result<Listening> listen_on(int fd, const ListenOptions& options);

/// The system's limit on backlogs; 0: unknown.
int backlog_max_of_system();

/// Accepts connections on the I/O thread, a bounded number at a time so that others get their
/// turn. While the process has no descriptor left, each newcomer gets `farewell` and is closed.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  struct Callbacks {
    /// Somebody came. `pause` may be called from here.
    std::function<void(Connection::Socket socket, const SocketAddress& peer)> accepted;
    /// A newcomer was sent away for want of descriptors, or accepting failed.
    std::function<void(std::string detail)> refused;
  };

  static std::shared_ptr<Listener> create(asio::io_context& context, Listening listening,
                                          std::string farewell);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void start(Callbacks callbacks);

  /// Leaves newcomers in the backlog until `resume`.
  void pause();
  void resume();
  void close();

  const SocketAddress& address() const { return address_; }

 private:
  Listener(asio::io_context& context, Listening listening, std::string farewell);

  void wait();
  void accept_some();
  bool accept_one();
  void out_of_descriptors(int error);
  void retry_later();

  asio::io_context& context_;
  SocketAddress address_;
  std::string remove_path_;
  std::string farewell_;
  Connection::Socket socket_;
  TrackedSocket tracked_;
  UniqueFd reserve_;                 ///< given up to be able to send a newcomer away
  asio::steady_timer retry_;
  std::shared_ptr<Connection> leaving_;
  Callbacks callbacks_;
  bool paused_ = false;
  bool waiting_ = false;
  bool closed_ = false;
};

}  // namespace muster::net
