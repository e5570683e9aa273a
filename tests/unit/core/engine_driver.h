#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "wire/reply.h"

namespace muster::test {

/// Plays the rim and all clients of an engine, for tests that scripts would be too slow or too
/// coarse for.
class EngineDriver {
 public:
  explicit EngineDriver(core::Options options = {}) : engine(std::move(options)) {}

  /// Leaves the effects in `effects`, with those of what the event puts off.
  void apply(const core::Event& event) {
    apply_alone(event);
    while (works_off && engine.has_backlog()) apply_alone(core::Continue{});
  }
  void apply_alone(const core::Event& event) {
    for (core::Effect& effect : engine.apply(event, now)) {
      if (auto* reply = std::get_if<core::SendReply>(&effect)) {
        reply->head += std::exchange(reply->value, {});  // it is good until the next event only
      }
      effects.push_back(std::move(effect));
    }
  }

  core::ConnectionId connect(std::string name_space = {}, wire::Role role = wire::Role::client,
                             std::string unit = {}) {
    core::Hello event;
    event.unit = std::move(unit);
    event.connection = ++last_connection_;
    event.hello.name_space = std::move(name_space);
    event.hello.role = role;
    event.hello.process.id.bytes[0] = static_cast<std::uint8_t>(last_connection_);
    event.hello.process.host = "host";
    event.fresh_token.bytes[0] = static_cast<std::uint8_t>(last_connection_);
    apply(event);
    apply(core::Echo{event.connection, event.fresh_token});
    return event.connection;
  }

  /// Acknowledges everything that the connection has got, as a client does.
  std::uint64_t ask(core::ConnectionId connection, wire::RequestBody body,
                    Duration timeout = Duration::zero()) {
    wire::Request request;
    request.id = next_request_id();
    request.timeout = timeout;
    request.body = std::move(body);
    for (const core::Effect& effect : effects) {
      const auto* reply = std::get_if<core::SendReply>(&effect);
      if (reply != nullptr && reply->connection == connection) {
        request.acknowledged.push_back(reply->request_id);
      }
    }
    repeat(connection, request);
    return request.id;
  }

  /// Greater than those before: ids ascend on every connection.
  std::uint64_t next_request_id() { return ++last_request_; }

  void repeat(core::ConnectionId connection, const wire::Request& request) {
    apply(core::Requested{connection, &request});
  }

  /// Lets time pass as a rim does: it looks at the engine whenever something is due.
  void pass(Duration duration) {
    const core::Instant end = now + duration;
    while (now < end) {
      const core::Instant tick = now + std::chrono::milliseconds(250);
      now = std::max(now, std::min({engine.next_deadline(), tick, end}));
      apply(core::Advance{});
    }
  }

  /// Takes the reply to a request out of `effects`.
  std::optional<core::SendReply> reply(std::uint64_t request_id) {
    for (auto effect = effects.begin(); effect != effects.end(); ++effect) {
      auto* found = std::get_if<core::SendReply>(&*effect);
      if (found == nullptr || found->request_id != request_id) continue;
      core::SendReply taken = std::move(*found);
      effects.erase(effect);
      return taken;
    }
    return std::nullopt;
  }

  /// How many effects of one kind there are.
  template <class Effect>
  int count() const {
    int number = 0;
    for (const core::Effect& effect : effects) number += std::holds_alternative<Effect>(effect);
    return number;
  }

  core::Engine engine;
  bool works_off = true;
  core::Instant now{std::chrono::seconds(1000)};
  std::vector<core::Effect> effects;

 protected:
  std::uint64_t last_request_id() const { return last_request_; }

 private:
  core::ConnectionId last_connection_ = 0;
  std::uint64_t last_request_ = 0;
};

/// The whole body of a reply.
inline std::string body_of(const core::SendReply& reply) {
  std::string body = reply.head;
  if (reply.tail != nullptr) body += reply.tail->view();
  return body;
}

/// The value of a get or take; nothing when it failed.
inline std::optional<std::string> value_of(const core::SendReply& reply) {
  if (reply.code != 0) return std::nullopt;
  const std::string body = body_of(reply);
  return std::string(wire::decode_body<wire::ValueReply>(body).value().value);
}

inline ErrorCode code_of(const core::SendReply& reply) {
  return static_cast<ErrorCode>(reply.code);
}

}  // namespace muster::test
