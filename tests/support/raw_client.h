#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/request.h"

namespace muster::test {

/// A socket that speaks the protocol by hand, or breaks it. Every wait has an end; one that is
/// reached throws std::runtime_error, which fails the test.
class RawClient {
 public:
  using Timeout = std::chrono::milliseconds;
  static constexpr Timeout patience{20'000};

  struct Frame {
    wire::FrameHeader header;
    std::string body;
  };

  /// address               "127.0.0.1:port", "[::1]:port" or "unix:/path"
  /// receive_buffer_bytes  of the socket; 0: as the system likes
  /// from                  an IPv4 address of this machine; "": as the system likes
  explicit RawClient(const std::string& address, int receive_buffer_bytes = 0,
                     const std::string& from = {});
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// A client that has said hello and was welcomed.
  static RawClient with_session(const std::string& address, int receive_buffer_bytes = 0,
                                const std::string& from = {});

  int fd() const { return fd_; }

  void send(std::string_view bytes);
  /// Sends as much as the socket takes without waiting; returns how much that was.
  std::size_t send_some(std::string_view bytes);
  /// No more will be sent.
  void finish_sending();

  /// Exactly `count` bytes; fewer when the other side has closed.
  std::string receive(std::size_t count, Timeout timeout = patience);
  /// One read: what has arrived together.
  std::string receive_some(Timeout timeout = patience);
  /// Whether the other side closes, or resets; what still comes before is dropped.
  bool is_closed(Timeout timeout = patience);

  wire::ServerHello say_hello(const wire::ClientHello& hello = {});
  /// Sends the echo of one that begins a session.
  wire::ServerHello receive_hello();
  /// The next frame; the parts of a reply are put together.
  Frame receive_frame(Timeout timeout = patience);
  /// The reason of a goodbye; other frames before it are dropped.
  std::string receive_goodbye();
  /// Why the server ends the session; other frames before it are dropped.
  Error receive_last_word();
  /// Sends a request and returns its reply; other frames before it are dropped.
  Frame call(wire::RequestBody body, Duration timeout = std::chrono::seconds(10));

  /// The bytes of a request frame with the next id, which acknowledges the replies so far.
  std::string request(wire::RequestBody body, Duration timeout = std::chrono::seconds(10));

 private:
  bool wait(short events, Timeout timeout) const;

  int fd_ = -1;
  std::uint64_t last_id_ = 0;
  std::uint64_t parts_of_ = 0;  ///< the reply whose first parts have come
  std::string parts_;
  std::vector<std::uint64_t> received_;  ///< ids of replies that are not acknowledged yet
};

}  // namespace muster::test
