#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine.h"
#include "samples.h"
#include "work.h"

namespace muster::bench {

using namespace std::chrono_literals;

/// An engine, and sessions that acknowledge what they are answered as clients do: replies that the
/// server keeps, with the next request. Each has one request at a time.
class Served {
 public:
  explicit Served(std::size_t sessions) : engine_(core::Options{}) {
    for (std::size_t i = 0; i < sessions; ++i) begin_session();
  }

  /// On a connection of its own; its number, from 0.
  std::size_t begin_session() {
    const std::size_t number = sessions_.size();
    Session& session = sessions_.emplace_back();
    session.connection = ++last_serial_ << core::connection_place_bits | number;
    core::Hello hello;
    hello.connection = session.connection;
    serial_into(hello.fresh_token.bytes);
    serial_into(hello.hello.process.id.bytes);
    apply(hello);
    apply(core::Echo{hello.connection, hello.fresh_token});
    return number;
  }
  void end_last_session() {
    apply(core::Goodbye{sessions_.back().connection});
    sessions_.pop_back();
  }

  /// The effects are valid until the next event.
  const std::vector<core::Effect>& ask(std::size_t session, wire::RequestBody body,
                                       Duration timeout = 5s) {
    Session& from = sessions_[session];
    request_.id = ++from.last_id;
    request_.timeout = timeout;
    request_.acknowledged.swap(from.unacknowledged);
    from.unacknowledged.clear();
    from.keeps =
        !std::holds_alternative<wire::Get>(body) && !std::holds_alternative<wire::MultiGet>(body);
    request_.body = std::move(body);
    return apply(core::Requested{from.connection, &request_});
  }
  void acknowledge(std::size_t session) {
    take_unacknowledged(session);
    apply(core::Acknowledged{sessions_[session].connection, &ids_});
  }
  void heartbeat(std::size_t session) {
    take_unacknowledged(session);
    apply(core::Heard{sessions_[session].connection});
    apply(core::Heartbeat{sessions_[session].connection, 1, &ids_});
  }
  /// So much time passes, and timers fire.
  void pass(Duration time) {
    now_ += time;
    apply(core::Advance{});
  }

 private:
  struct Session {
    core::ConnectionId connection = 0;
    std::uint64_t last_id = 0;
    bool keeps = false;  ///< the server, the reply to the last request
    std::vector<std::uint64_t> unacknowledged;
  };

  /// Only the last session ever ends.
  Session& of(core::ConnectionId connection) { return sessions_[core::place_of(connection)]; }
  void take_unacknowledged(std::size_t session) {
    ids_.swap(sessions_[session].unacknowledged);
    sessions_[session].unacknowledged.clear();
  }

  template <class Bytes>
  void serial_into(Bytes& bytes) const {
    for (std::size_t i = 0; i < sizeof(last_serial_); ++i) {
      bytes[i] = static_cast<std::uint8_t>(last_serial_ >> (8 * i));
    }
  }

  static constexpr auto timed_out = static_cast<std::uint16_t>(ErrorCode::timed_out);

  const std::vector<core::Effect>& apply(const core::Event& event) {
    now_ += 1us;
    auto& effects = engine_.apply(event, now_);
    for (const core::Effect& effect : effects) {
      const auto* const reply = std::get_if<core::SendReply>(&effect);
      if (reply == nullptr) continue;
      const bool is_good = reply->code == 0 || reply->code == timed_out;
      if (!is_good) throw std::runtime_error("a request was refused");
      Session& session = of(reply->connection);
      if (session.keeps) session.unacknowledged.push_back(reply->request_id);
    }
    return effects;
  }

  core::Engine engine_;
  core::Instant now_{1s};
  std::vector<Session> sessions_;
  core::ConnectionId last_serial_ = 0;
  wire::Request request_;
  std::vector<std::uint64_t> ids_;
};

}  // namespace muster::bench
