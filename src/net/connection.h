#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "net/address/socket_address.h"
#include "net/loop.h"
#include "net/timer.h"
#include "net/watcher.h"

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
/// Reading and writing hold the connection alive until `closed` has been called or `close` was.
class Connection final : public Watcher, public std::enable_shared_from_this<Connection> {
 public:
  struct Callbacks {
    /// Bytes came; valid during the call. Everything queued meanwhile leaves after it.
    std::function<void(std::string_view bytes)> received;
    /// The connection is over, and not because `close` was called. The last callback, after all
    /// that the peer sent before it was over (unless reading is paused); never called from within
    /// a member function.
    std::function<void(CloseCause cause, std::string detail)> closed;
    /// Some of what could not leave at once has left meanwhile. May be empty.
    std::function<void()> drained;
  };

  /// peer          who is at the other end of `fd`, which does not block
  /// user_timeout  how long the peer may acknowledge nothing before the connection is lost
  static std::shared_ptr<Connection> create(Loop& loop, UniqueFd fd, const SocketAddress& peer,
                                            Duration user_timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start(Callbacks callbacks);
  void set_user_timeout(Duration user_timeout);

  /// Queues bytes behind what was queued before: a copy, or by reference when they are many.
  void send(std::string_view bytes);
  void send(SharedBytes bytes);

  /// Writes what is queued, now, as far as the socket takes it; the rest follows by itself.
  /// Called by itself after each batch of reads.
  void flush();

  /// For an owner who lets other threads send, too, while the I/O thread does nothing with the
  /// connection and nothing is unsent, which its own lock sees to: what `send_now` takes. It is
  /// open until `closed` has returned.
  int descriptor() const { return fd(); }
  /// returns  how many of `bytes` have left; what the rest waits for, `flush` finds out
  static std::size_t send_now(int descriptor, std::string_view bytes) noexcept;

  /// The next read goes there, and `received` is told of it there; afterwards, or when it is empty,
  /// into the loop's buffer. For many bytes that their owner keeps.
  void read_into(std::span<char> room) { room_ = room; }

  /// No more reads until `resume_reading`: for a peer that does not take its replies. The end of
  /// the connection is not seen meanwhile.
  void pause_reading();
  void resume_reading();

  /// Closes at once, or when what is queued has left and the peer has closed its side too, so
  /// that the last bytes reach it; no callback follows. What has not left is let go.
  void close();
  void close_after_flush(Duration at_most);
  bool is_open() const { return state_ == State::open; }
  /// After `close_after_flush`: whether it still waits.
  bool is_lingering() const { return state_ == State::lingering; }

  std::uint64_t unsent_bytes() const { return unsent_bytes_; }
  /// Of them, those that are held here and not by reference.
  std::uint64_t unsent_own_bytes() const { return unsent_own_bytes_; }
  /// Since when the peer has taken nothing although something was there to take; far_future
  /// when that is not so.
  base::Instant stalled_since() const { return stalled_since_; }

  /// The other side's address, such as "10.0.0.7:51234"; "unix:/path" of the own side's socket.
  const std::string& peer() const { return peer_; }

 private:
  enum class State : std::uint8_t { fresh, open, failing, lingering, closed };
  struct Piece {
    std::string own;
    SharedBytes shared;
    std::string_view view() const { return shared.keep_alive ? shared.view : own; }
  };

  class Visit;

  Connection(Loop& loop, UniqueFd fd, const SocketAddress& peer, Duration user_timeout);

  void on_ready(std::uint32_t events) override;
  void on_loop_end() noexcept override;
  void update_watch();

  void on_readable();
  void read_batch();
  std::size_t read_once();
  void discard_received();
  void queue_tail();
  void on_writable();
  void write_queue();
  long write_some();
  void took(std::size_t bytes);
  void reset_queue();
  void fail(int error, const char* during);
  void read_the_rest();
  void leave_callback();

  Callbacks callbacks_;
  std::string peer_;
  std::span<char> room_;
  std::vector<Piece> queue_;  ///< from `first_` on; what is before has left
  std::size_t first_ = 0;
  std::size_t first_sent_bytes_ = 0;  ///< of the first piece, or of `tail_` when there is none
  std::string tail_;                  ///< what is behind the queue: most often all there is
  std::uint64_t unsent_bytes_ = 0;
  std::uint64_t unsent_own_bytes_ = 0;
  base::Instant stalled_since_ = base::far_future;
  std::unique_ptr<Timer> linger_;
  std::shared_ptr<Connection> self_;  ///< while it may be read or written
  State state_ = State::fresh;
  bool is_blocked_ = false;  ///< the socket has not taken all
  bool paused_ = false;
  bool in_callback_ = false;
  bool is_visited_ = false;  ///< by the loop
};

}  // namespace muster::net
