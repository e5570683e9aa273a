#pragma once

#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace nccl_double {

/// Ends what waits for a socket, or for time, for good.
class Cancel {
 public:
  Cancel();
  ~Cancel() { close(); }
  Cancel(const Cancel&) = delete;
  Cancel& operator=(const Cancel&) = delete;

  void set();
  /// Sets it, too; once nobody waits any more.
  void close();
  bool is_set() const { return is_set_; }
  int descriptor() const { return descriptor_; }

  void wait() const;
  void wait_for(std::chrono::milliseconds time) const;

 private:
  int descriptor_;
  std::atomic<bool> is_set_{false};
};

/// A socket that is counted, and, as NCCL's are, inherited by exec'd children.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() { close(); }

  void close();
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

enum class Outcome { done, closed, refused, cancelled };

struct Listener {
  Socket socket;
  sockaddr_in address{};
};
/// On loopback; `port` 0: any. Without a socket when there is none to be had.
Listener listen_on_loopback(std::uint16_t port = 0);

struct Connected {
  Socket socket;
  Outcome outcome = Outcome::refused;
};
Connected accept_at(const Socket& listener, const Cancel& cancel);
/// Tries again as often, and after such times, as NCCL does.
Connected connect_to(const sockaddr_in& address, const Cancel& cancel);

/// Bytes that go to, or come from, one socket.
struct Transfer {
  int descriptor = -1;
  char* bytes = nullptr;
  std::size_t left = 0;
  enum class Direction { send, receive } direction = Direction::send;
};
Transfer sending(const Socket& socket, const void* bytes, std::size_t size_bytes);
Transfer receiving(const Socket& socket, void* bytes, std::size_t size_bytes);

/// Moves what can be moved now; for a transfer whose socket is ready. `done`: all of it.
enum class Moved { some, done, closed };
Moved move(Transfer& transfer);

/// Both at the same time, since each of all ranks may send first. The peer that is sent to is
/// watched to the end: one that closes its end without finish_round is dead.
Outcome exchange(Transfer out, Transfer in, const Cancel& cancel);
Outcome send(const Socket& socket, const void* bytes, std::size_t size_bytes, const Cancel&);
Outcome receive(const Socket& socket, void* bytes, std::size_t size_bytes, const Cancel&);

/// After the exchanges of one round over a ring: tells the predecessor that everything has come,
/// and waits until the successor says so. Then both may go without anybody missing them.
Outcome finish_round(const Socket& next, const Socket& previous, const Cancel& cancel);

}  // namespace nccl_double
