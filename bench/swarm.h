#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dialect.h"
#include "encryption.h"
#include "subject.h"

namespace muster::bench {

using Clock = std::chrono::steady_clock;

/// Of this process so far, all its threads.
double own_processor_us();
double microseconds_since(Clock::time_point began);

/// Many connections to one server, served by the calling thread with one epoll set: what the
/// client costs is little, and known.
class Swarm {
 public:
  enum class Greeting {
    minimal,  ///< what the protocol wants before the first request; often nothing
    answered  ///< something with an answer, so that each has been accepted and served
  };

  explicit Swarm(const Subject& subject);
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  /// Adds so many connections, of which at most `at_once` are being made at a time; returns when
  /// all are greeted. What each took, in microseconds, from its connect() on.
  std::vector<double> connect(int count, int at_once = 128, Greeting greeting = Greeting::minimal);

  /// Closes all connections without a word, and makes them again, all sessions going on.
  std::vector<double> reconnect(int at_once);

  int size() const { return static_cast<int>(peers_.size()); }
  Dialect& dialect(int peer) { return *peers_[index(peer)].dialect; }
  /// What is to be sent; a request is appended there, and goes with the next `flush`.
  std::string& out(int peer) { return peers_[index(peer)].out; }
  void flush(int peer);
  void flush_all();

  /// Is told of each read that has brought replies. What it appends to `out` is flushed behind it.
  using OnReplies = std::function<void(int peer, std::size_t replies)>;
  /// Reads until so many replies have come, in all; throws when for a long time none does.
  void receive(std::size_t replies, const OnReplies& on_replies = {});
  /// The same, until this says so.
  void receive_until(const std::function<bool()>& is_enough, const OnReplies& on_replies);
  /// Sends what `out(peer)` has, and waits for so many replies from this peer alone.
  void call(int peer, std::size_t replies = 1);

  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Peer {
    int fd = -1;
    std::unique_ptr<Dialect> dialect;
    std::unique_ptr<Sealed> tls;  ///< null: nothing is encrypted
    std::string out;              ///< in clear
    bool waits_to_write = false;
  };

  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  std::vector<double> make_connections(int first, int at_once, Greeting greeting);
  void open(Peer& peer);
  void watch(int peer, std::uint32_t events, int how) const;
  bool shake_hands(int peer, std::uint32_t events);
  void greet(int peer, Greeting greeting);
  void read(int peer, const OnReplies& on_replies);
  std::string_view receive_some(Peer& peer);
  template <class OnEvent>
  void wait(OnEvent&& on_event);

  const Subject& subject_;
  int epoll_ = -1;
  std::vector<Peer> peers_;
  std::vector<char> buffer_;
  std::string clear_;  ///< what the last read has brought
  std::uint64_t bytes_received_ = 0;
};

}  // namespace muster::bench
