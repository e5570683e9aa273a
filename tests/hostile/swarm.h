#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.h"
#include "net/tls/library.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/request.h"

namespace muster::hostile {

/// One connection of an attack, which speaks the protocol by hand.
struct Client {
  enum class State : std::uint8_t { connecting, connected, waits_for_hello, welcome, closed };

  int fd = -1;
  State state = State::closed;
  bool has_said_hello = false;
  bool reads = true;
  ErrorCode refused = ErrorCode{};  ///< by the server's hello
  std::uint32_t retransmitted = 0;  ///< SYNs that were sent again
  std::uint64_t session_id = 0;
  wire::ResumeToken token;
  std::uint64_t last_id = 0;
  std::uint64_t in_flight = 0;          ///< requests without a reply
  std::vector<std::uint64_t> received;  ///< ids of replies that are not acknowledged yet
  std::string in;
  std::string out;
  std::size_t sent = 0;                       ///< of `out`
  std::unique_ptr<net::tls::TlsSession> tls;  ///< null: all is in clear
  bool is_encrypted = false;                  ///< the handshake is over
  std::string clear;                          ///< to be sent after it
  std::function<void(Client&, const wire::Frame&)> on_reply;

  bool is_open() const { return state != State::closed; }
  bool is_welcome() const { return state == State::welcome; }
  std::size_t unsent() const { return out.size() - sent; }
};

/// Where connections come from: addresses of 127.0.0.0/8 in turn.
class Sources {
 public:
  /// first  "127.0.0.2"
  Sources(const std::string& first, std::uint32_t count);
  in_addr next();

 private:
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t taken_ = 0;
};

/// Many clients of one server on one thread. Nothing is sent or received but in `turn` and in what
/// waits; each client sends a heartbeat now and then.
class Swarm {
 public:
  using Time = std::chrono::steady_clock;
  using Clients = std::vector<Client*>;

  /// server  "127.0.0.1:port"
  explicit Swarm(const std::string& server);
  ~Swarm();
  /// Clients that are opened from now on use TLS, with the key of MUSTER_CREDENTIAL_FILE.
  void use_tls();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  /// Begins to connect; nothing is waited for.
  ///
  /// receive_buffer_bytes  of the socket; 0: as the system likes; 4,096: the server's system keeps
  ///                       little of what is not read, too
  Client& open(in_addr from, int receive_buffer_bytes = 0);
  /// Ends it at once; the client is another one's from now on.
  void close(Client& client);
  void close(const Clients& clients);

  void send(Client& client, std::string_view bytes);
  void say_hello(Client& client, const wire::ClientHello& hello = {});
  void request(Client& client, wire::RequestBody body,
               Duration timeout = std::chrono::seconds(600));
  void say_goodbye(Client& client);
  void stop_reading(Client& client);

  /// One look at all sockets and at the standard input.
  void turn(std::chrono::milliseconds wait_max = std::chrono::milliseconds(20));
  /// returns  false: it took longer than the limit
  bool turn_until(const std::function<bool()>& is_done, std::chrono::seconds limit);

  /// Opens clients and waits until each has been welcomed or refused.
  Clients enter(std::size_t count, Sources& sources, const wire::ClientHello& hello = {});
  void wait_until_closed(const Clients& clients);
  /// Sends `count` requests of the client's, so many at a time, and waits for their replies.
  void ask(Client& client, std::size_t count, std::size_t at_once,
           const std::function<wire::RequestBody(std::size_t index)>& body,
           Duration timeout = std::chrono::seconds(600));

  /// Lines that have come from the standard input; its end ends the process.
  std::size_t told_count() const { return told_count_; }
  /// Replies by their codes.
  const std::map<ErrorCode, std::uint64_t>& replies() const { return replies_; }
  std::uint64_t replies(ErrorCode code) const;
  std::uint64_t events(wire::EventKind kind) const;
  std::uint64_t received_bytes() const { return received_bytes_; }
  /// Connections that the server has ended, and those that the system refused.
  std::uint64_t ended_count() const { return ended_count_; }

 private:
  void handle(Client& client, std::uint32_t events);
  void connected(Client& client);
  bool decrypt(Client& client, std::string_view came);
  void flush(Client& client);
  void receive(Client& client);
  void take(Client& client);
  bool take_hello(Client& client);
  void handle(Client& client, const wire::Frame& frame);
  void end(Client& client);
  void watch(Client& client);
  void read_orders();
  void send_heartbeats();

  sockaddr_in server_{};
  int epoll_ = -1;
  std::shared_ptr<const net::tls::TlsContext> tls_;
  std::vector<std::unique_ptr<Client>> clients_;
  Clients free_;
  std::string buffer_;
  std::size_t told_count_ = 0;
  std::size_t heartbeats_from_ = 0;
  Time::time_point heartbeats_at_{};
  std::map<ErrorCode, std::uint64_t> replies_;
  std::map<wire::EventKind, std::uint64_t> events_;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t ended_count_ = 0;
};

}  // namespace muster::hostile
