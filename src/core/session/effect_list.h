#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/session/backlog.h"
#include "core/session/effects.h"
#include "core/session/long_copies.h"
#include "core/session/session.h"

namespace muster::core {

/// The effects of the event in hand, in the order in which they are to be carried out. What is for
/// a session that is not connected is dropped: it asks again, is told again, or has expired by
/// then.
class EffectList {
 public:
  std::vector<Effect>& all() { return all_; }

  /// `work_max`: so many steps of what can be put off the event may do.
  void begin_event(std::uint32_t work_max) {
    all_.clear();
    work_ = 1;
    work_max_ = work_max;
  }
  /// The event may do fewer.
  void limit_work(std::uint32_t work_max) {
    work_max_ = std::min<std::uint64_t>(work_max_, work_max);
  }
  /// What the event has cost, in steps that do not depend on the machine.
  std::uint64_t work() const { return work_; }
  void spend(std::uint64_t work) { work_ += work; }
  void spend_on_copying(std::uint64_t bytes) { work_ += bytes / LongCopies::bytes_per_step; }
  /// Whether so much can be copied in this event, or has to be a long copy. Little always can.
  bool may_copy(std::uint64_t bytes) const {
    const std::uint64_t steps_max =
        std::max(static_cast<std::uint64_t>(work_left()), work_max_ / 16);
    return bytes / LongCopies::bytes_per_step <= steps_max;
  }

  /// How many steps of what can be put off the event may still do.
  int work_left() const { return work_ < work_max_ ? static_cast<int>(work_max_ - work_) : 0; }

  /// What was decided and need not be done in this event.
  Backlog& backlog() { return backlog_; }
  const Backlog& backlog() const { return backlog_; }
  LongCopies& long_copies() { return long_copies_; }

  template <class One>
  void add(One effect) {
    all_.emplace_back(std::move(effect));
  }
  void log(LogLevel level, std::string line, std::string unit = {}) {
    add(Log{level, std::move(line), std::move(unit)});
  }
  void send_event(const Session& session, wire::EventKind kind,
                  std::shared_ptr<const std::string> body) {
    ++work_;
    if (session.connection != 0) add(SendEvent{session.connection, kind, std::move(body)});
  }
  void send(const Session& session, std::uint64_t request_id, Answer&& answer) {
    ++work_;
    if (session.connection == 0) return;
    SendReply& reply = add_reply(session.connection, request_id, answer.code);
    reply.owns_tail = answer.owns_tail;
    reply.head = std::move(answer.head);
    reply.value = answer.value;
    reply.tail = std::move(answer.tail);
    hold_if_unfinished(reply);
  }
  /// The answer stays with who keeps it, so it has no borrowed value.
  void send_copy(const Session& session, std::uint64_t request_id, const Answer& answer) {
    ++work_;
    if (session.connection == 0) return;
    SendReply& reply = add_reply(session.connection, request_id, answer.code);
    reply.head = answer.head;
    reply.tail = answer.tail;
    hold_if_unfinished(reply);
  }

 private:
  SendReply& add_reply(ConnectionId connection, std::uint64_t request_id, std::uint16_t code) {
    Effect& effect = all_.emplace_back(std::in_place_type<SendReply>);
    SendReply& reply = *std::get_if<SendReply>(&effect);
    reply.connection = connection;
    reply.request_id = request_id;
    reply.code = code;
    return reply;
  }

  void hold_if_unfinished(SendReply& reply) {
    if (!long_copies_.empty() && long_copies_.hold(reply)) all_.pop_back();
  }

  std::vector<Effect> all_;
  std::uint64_t work_ = 1;
  std::uint64_t work_max_ = 0;
  Backlog backlog_;
  LongCopies long_copies_{backlog_, all_, work_};
};

}  // namespace muster::core
