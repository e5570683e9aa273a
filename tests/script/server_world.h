#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/channel.h"
#include "net/send_queue.h"
#include "server/world.h"

// The world of a service, imagined: connections whose sockets take what a script says, and a clock
// that a script moves.

namespace muster::script {

/// One connection with its socket and the peer's end of it.
class FakeChannel final : public net::Channel {
 public:
  /// What the peer and the script see of it.
  struct Observer {
    std::function<void(std::string_view bytes)> took;  ///< in one write
    std::function<void(std::string_view what)> changed;
    std::function<base::Instant()> now;
  };

  FakeChannel(std::string peer, Observer observer);

  // The service's side.
  void send(std::string_view bytes) override;
  void send(net::SharedBytes bytes) override;
  void flush() override;
  std::size_t offer(std::span<const std::string_view> pieces) override;
  void read_into(std::span<char> room) override { room_ = room; }
  void pause_reading() override;
  void resume_reading() override;
  void read_now() override { read(); }
  void close() override;
  void close_after_flush(Duration at_most) override;
  bool is_open() const override { return state_ == State::open; }
  bool is_lingering() const override { return state_ == State::lingering; }
  std::string peer() const override { return peer_; }
  /// As net::Connection, but that nothing is allocated ahead.
  std::uint64_t held_bytes() const override {
    return unsent_own_bytes_ + unsent_pieces_ * net::SendQueue::piece_bytes;
  }

  // The script's side.

  /// Bytes come from the peer. What the service does not read waits.
  void deliver(std::string_view bytes);
  /// Reads what waits, if it is read again.
  ///
  /// returns  whether there was something
  bool read();
  /// From now on the peer takes everything; nothing; so many bytes more.
  void take_everything();
  void take_nothing() { capacity_ = 0; }
  void take(std::uint64_t bytes);
  /// The connection ends by itself.
  void end(net::CloseCause cause);
  /// The peer does not close its side when the service has closed the connection.
  void stay() { peer_stays_ = true; }
  /// When it is closed although the peer has not closed its side.
  base::Instant linger_deadline() const {
    return state_ == State::lingering ? linger_deadline_ : base::far_future;
  }
  void linger_out();

 private:
  void begin() override { state_ = State::open; }

  enum class State : std::uint8_t { fresh, open, lingering, closed };
  struct Piece {
    std::string bytes;
    std::shared_ptr<const void> keep_alive;  ///< null: own bytes
    bool is_for_one = false;
  };

  void write();
  void drain();
  void drop_queue();
  void finish_lingering();

  std::string peer_;
  Observer observer_;
  std::deque<Piece> queue_;
  std::span<char> room_;
  std::string incoming_;
  std::optional<std::uint64_t> capacity_;  ///< of the socket; nothing: it takes everything
  base::Instant linger_deadline_ = base::far_future;
  State state_ = State::fresh;
  bool is_paused_ = false;
  bool is_blocked_ = false;
  bool peer_stays_ = false;
};

class FakeWorld final : public server::World {
 public:
  base::Instant now() const override { return time; }
  Duration worked() const override { return work; }
  net::TurnStats turn_stats() const override { return all_turns; }
  std::uint64_t turn() const override { return turn_number; }
  void wake_at(base::Instant when) override { timer = when; }
  void wake_soon() override { is_woken = true; }
  void stop_listening() override { is_listening = false; }

  base::Instant time{std::chrono::seconds(1000)};
  Duration work{};  ///< what the thread has done so far
  net::TurnStats all_turns;
  std::uint64_t turn_number = 1;
  base::Instant timer = base::far_future;
  bool is_woken = false;
  bool is_listening = true;
};

}  // namespace muster::script
