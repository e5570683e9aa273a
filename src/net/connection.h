#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "net/address/socket_address.h"
#include "net/channel.h"
#include "net/loop.h"
#include "net/owner_call.h"
#include "net/send_queue.h"
#include "net/timer.h"
#include "net/watcher.h"

namespace muster::net {

/// One stream socket (TCP or Unix) on the I/O thread. Reads whatever comes, and sends what was
/// queued during one batch of reads in one write. Used on the I/O thread only.
///
/// The socket has TCP_NODELAY, TCP_USER_TIMEOUT as given, and is close-on-exec. Reading and writing
/// hold the connection alive until `closed` has been called or `close` was.
class Connection final : public Channel,
                         public Watcher,
                         public std::enable_shared_from_this<Connection> {
  struct Passkey {};

 public:
  /// peer          who is at the other end of `fd`, which does not block
  /// user_timeout  how long the peer may acknowledge nothing before the connection is lost
  static std::shared_ptr<Connection> create(Loop& loop, UniqueFd fd, const SocketAddress& peer,
                                            Duration user_timeout);
  /// What every socket of TCP has. Linux gives what a listening socket has to those that it
  /// accepts.
  static void set_options(int fd, Duration user_timeout);
  /// The same of a socket that has these options.
  static std::shared_ptr<Connection> accepted(Loop& loop, UniqueFd fd, const SocketAddress& peer);

  Connection(Passkey, Loop& loop, UniqueFd fd, const SocketAddress& peer);
  ~Connection() override;

  void set_user_timeout(Duration user_timeout) override;

  void send(std::string_view bytes) override;
  void send(SharedBytes bytes) override;
  void flush() override;
  std::size_t offer(std::span<const std::string_view> pieces) override;

  std::uint64_t held_bytes() const override { return queue_.allocated_bytes(); }
  int descriptor() const override { return fd(); }
  /// returns  how many of `bytes` have left; what the rest waits for, `flush` finds out
  static std::size_t send_now(int descriptor, std::string_view bytes) noexcept;
  /// Whether the other side of a connection has ended it, also while nothing is read. false: as far
  /// as is known.
  static bool has_gone(int descriptor) noexcept;

  void read_into(std::span<char> room) override { room_ = room; }
  void pause_reading() override;
  void resume_reading() override;
  void read_now() override;

  void close() override;
  void close_after_flush(Duration at_most) override;
  bool is_open() const override { return state_ == State::open; }
  bool is_lingering() const override { return state_ == State::lingering; }
  std::string peer() const override;

 private:
  enum class State : std::uint8_t { fresh, open, failing, lingering, closed };
  class Visit;
  friend class OwnerCall<Connection>;

  void begin() override;
  void on_ready(std::uint32_t events) override;
  void on_loop_end() noexcept override;
  void update_watch();

  void on_readable();
  void read_batch();
  std::size_t read_once();
  void discard_received();
  void count();
  void on_writable();
  void write_queue();
  long write_some();
  long send_views(std::span<iovec> views);
  void took(std::size_t bytes);
  void reset_queue();
  void fail(int error, const char* during);
  void read_the_rest();

  InternetAddress address_;                       ///< the peer's; none: see `unix_peer_`
  std::unique_ptr<const std::string> unix_peer_;  ///< named when it came: nothing else keeps it
  std::span<char> room_;
  SendQueue queue_;
  std::unique_ptr<Timer> linger_;
  std::shared_ptr<Connection> self_;  ///< while it may be read or written
  State state_ = State::fresh;
  bool is_blocked_ = false;  ///< the socket has not taken all
  bool paused_ = false;
  bool in_callback_ = false;
  bool is_visited_ = false;  ///< by the loop
  bool is_shut_ = false;     ///< the peer is told that nothing more comes
};

}  // namespace muster::net
