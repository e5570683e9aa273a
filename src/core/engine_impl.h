#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/spare_nodes.h"
#include "core/engine.h"
#include "core/memory/hash.h"
#include "core/name_space.h"
#include "core/session/failure.h"
#include "core/session/host.h"
#include "core/session/session.h"
#include "wire/operation_table.h"

namespace muster::core {

/// The connections that were closed last, and why: frames of theirs may still be on their way.
class ClosedConnections {
 public:
  void add(ConnectionId connection, std::shared_ptr<const Error> reason);
  /// Null when it is not known (any more).
  const Error* reason(ConnectionId connection) const;

 private:
  static constexpr std::size_t count_max = 1024;
  std::unordered_map<ConnectionId, std::shared_ptr<const Error>> reasons_;
  std::deque<ConnectionId> order_;
};

/// The sessions that were fenced last: who comes back is told so, and by whom it was.
class FencedSessions {
 public:
  void add(std::uint64_t session_id, const Error& why);
  /// Empty when it is not known (any more).
  std::string_view by(std::uint64_t session_id) const;

 private:
  static constexpr std::size_t count_max = 4096;
  std::unordered_map<std::uint64_t, std::string> by_;
  std::deque<std::uint64_t> order_;
};

/// engine.cpp has time, timers and namespaces, engine_sessions.cpp how sessions begin and end,
/// engine_requests.cpp requests and their answers, engine_status.cpp and engine_inspect.cpp what
/// operators are told.
class Engine::Impl final : public Host {
 public:
  explicit Impl(Options options);
  ~Impl();

  std::vector<Effect>& apply(const Event& event, Instant now);
  Instant next_deadline() const;
  Counts counts() const;

  // Host
  const Options& options() const override { return options_; }
  Quota& quota() override { return quota_; }
  TimerWheel& timers() override { return timers_; }
  Instant now() const override { return now_; }
  std::uint64_t next_epoch() override { return ++last_epoch_; }
  Parked* park(const RequestContext& context) override;
  void answer(const RequestContext& context, Answer&& answer) override;
  void fail(const RequestContext& context, Error error) override;
  void answer(Parked& parked, Answer&& answer) override;
  void fail(Parked& parked, Error error) override;
  Payload keep_brought(Quota& quota, std::string_view bytes) override;
  void send_event(Session& session, wire::EventKind kind,
                  std::shared_ptr<const std::string> body) override;
  void end_session(Session& session, Error why, LossCause cause) override;
  Duration silence(const Session& session) const override;
  void log(LogLevel level, std::string line) override;

 private:
  struct Dispatch;
  struct ProcessHash {
    std::array<std::uint64_t, 2> key;
    std::size_t operator()(const ProcessId& id) const {
      return keyed_hash(key, {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    }
  };
  enum class Caching { never, if_acknowledged, always };

  void on(const Hello& event);
  void on(const Heard& event);
  void on(const Requested& event);
  void on(const Acknowledged& event);
  void on(const Abandoned& event);
  void on(const Heartbeat& event);
  void on(const Goodbye& event);
  void on(const Disconnected& event);
  void on(const Advance& event);
  void on(const Stop& event);

  // Time.
  void observe(Instant now);
  /// Returns how much was done: one timer, or so many keys.
  int fire(Timer& timer, int work_max);
  void fire_expiry(Session& session);
  Instant deadline_of(const Session& session) const;

  // Namespaces. Null: there are too many.
  NameSpace* name_space_for(const std::string& name);
  void watch_if_unused(NameSpace& name_space);
  void delete_one_unused();

  // Sessions and connections.
  std::optional<Error> refusal(const wire::ClientHello& hello) const;
  std::optional<Error> refusal(const Session& session, const wire::ClientHello& hello) const;
  void refuse(const Hello& event, Error why);
  void begin(const Hello& event);
  void resume(const Hello& event);
  void welcome(Session& session, const Hello& event);
  void end(Session& session, LossCause cause);
  /// Null when there is none; `connection` is not 0.
  Session* session_on(ConnectionId connection);
  void forget_connection(ConnectionId connection);
  /// The session that speaks on the connection, marked as heard. Null after a breach of the
  /// protocol, which closes the connection, and for connections that were closed before.
  Session* speaker(ConnectionId connection, std::string_view doing);
  void heard(Session& session);
  void detach(Session& session, DisconnectCause cause);
  void close(ConnectionId connection, Error reason);

  // Requests and answers.
  std::optional<Error> refusal(const RequestContext& context) const;
  void turn_away(const Requested& event);
  void report_dead(const RequestContext& context, const wire::ReportDead& request);
  void send_status(const RequestContext& context);
  void send_sessions(const RequestContext& context, const wire::Sessions& request);
  void send_waiters(const RequestContext& context, const wire::Waiters& request);
  std::vector<const Session*> sessions_after(const NameSpace& name_space, std::uint64_t id) const;
  void acknowledge(Session& session, const std::vector<std::uint64_t>& request_ids);
  void abandon(Session& session, std::uint64_t request_id);
  const Answer& keep(Session& session, std::uint64_t request_id, Answer&& answer);
  void forget(Session& session, Answers::node_type kept);
  void forget_answers(Session& session);
  ParkedByRequest::node_type take_parked(Parked& parked);
  void hasten(Parked& parked, Duration left);
  void deliver(Session& session, std::uint64_t request_id, Answer&& answer, Caching caching);
  void send_kept(const Session& session, std::uint64_t request_id, const Answer& answer);
  void send(const Session& session, std::uint64_t request_id, std::uint16_t code,
            std::string&& head, std::string_view value, Payload&& tail);

  Options options_;
  Quota quota_;
  TimerWheel timers_;
  bool started_ = false;
  bool stopping_ = false;
  Instant start_{};
  Instant now_{};
  Duration paused_sum_{};  ///< time in which the process did not run
  Instant held_until_{};   ///< no timer fires before

  std::uint64_t last_epoch_ = 0;
  std::uint64_t last_session_id_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  std::unordered_map<ConnectionId, Session*> connections_;
  ConnectionId last_connection_ = 0;  ///< that was looked up; 0: none
  Session* last_session_ = nullptr;
  std::unordered_map<ProcessId, Chain<Session>, ProcessHash> processes_;
  std::unordered_map<std::string, std::unique_ptr<NameSpace>> name_spaces_;
  std::deque<NameSpace*> watched_;  ///< without sessions when they came here
  ClosedConnections closed_;
  FencedSessions fenced_;
  std::array<std::uint64_t, wire::operations_count> operation_counts_{};
  std::uint64_t sessions_lost_count_ = 0;
  std::uint64_t observers_count_ = 0;
  std::uint64_t parked_count_ = 0;
  std::uint64_t cached_count_ = 0;

  base::SpareNodes<Answers> spare_answers_;
  std::vector<Effect> effects_;
  ChargedMemory* brought_in_ = nullptr;  ///< where the request in hand lies; null: elsewhere
  Payload brought_;                      ///< what was kept of it: its views lie there
  std::vector<std::unique_ptr<Session>> ended_;  ///< somebody may still hold a reference
};

}  // namespace muster::core
