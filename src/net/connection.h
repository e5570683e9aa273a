#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/asio.h"

namespace muster::net {

/// Bytes that are sent from where they are: `keep_alive` holds them until they have left.
struct SharedBytes {
  std::string_view view;
  std::shared_ptr<const void> keep_alive;
};

enum class CloseCause : std::uint8_t {
  by_peer,  ///< FIN or RST
  lost,     ///< anything else: time-out of the kernel, no route
};

/// One stream socket (TCP or Unix) on the I/O thread. Reads whatever comes, and sends what was
/// queued during one batch of reads in one write. Used on the I/O thread only.
///
/// The socket has TCP_NODELAY, keepalive off, TCP_USER_TIMEOUT as given, and is close-on-exec.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Callbacks {
    /// Bytes came; valid during the call. Everything queued meanwhile leaves after it.
    std::function<void(std::string_view bytes)> received;
    /// The connection is over, and not because `close` was called. The last callback.
    std::function<void(CloseCause cause, std::string detail)> closed;
  };

  using Socket = asio::generic::stream_protocol::socket;

  static std::shared_ptr<Connection> create(Socket socket, Duration user_timeout);

  void start(Callbacks callbacks);

  /// Queues bytes behind what was queued before.
  void send(std::string_view bytes);
  void send(SharedBytes bytes);

  /// Writes what is queued, now; called by itself after each batch of reads.
  void flush();

  /// No more reads until `resume_reading`: for a peer that does not take its replies.
  void pause_reading();
  void resume_reading();

  /// Closes at once, or when what is queued has left; no callback follows.
  void close();
  void close_after_flush(Duration at_most);

  std::uint64_t unsent_bytes() const;
  /// Since when the peer has taken nothing although something was there to take.
  base::Instant stalled_since() const;
  const std::string& peer() const;
};

}  // namespace muster::net
