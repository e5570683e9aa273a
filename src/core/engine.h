#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/events.h"
#include "core/inspector.h"
#include "core/memory/freed_pieces.h"
#include "core/operators.h"
#include "core/session/effects.h"
#include "core/session/snapshot.h"
#include "core/sessions.h"
#include "wire/operation_table.h"

// The engine is the server without sockets, threads and clock: events go in with the time at
// which they happened, effects come out. A rim (src/server, or a test, a simulator, a fuzzer)
// turns the world into events and effects into deeds. The same events give the same effects.

namespace muster::core {

class Engine {
 public:
  explicit Engine(Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Handles one event. An earlier `now` than that of the last call counts as that.
  ///
  /// returns  the effects, valid until the next call
  /// cost     does not depend on the number of keys, sessions and waits. What an event brings about
  ///          for many is decided in it and done by later ones, see `has_backlog`; it does no more
  ///          than `work_per_event_max` steps of it. What grows is O(world_size) where a round or
  ///          an epoch is decided, ends or is told of; O(keys) of the request, and O(bytes) that it
  ///          brings and are copied; O(objects) that `expire_data` drops, which are limited; and
  ///          O(waits) for several keys at a key that comes or goes, which are limited
  ///          (`waits_for_several_max`)
  std::vector<Effect>& apply(const Event& event, Instant now);

  /// When `Advance` is due next; far_future when nothing waits.
  Instant next_deadline() const;

  /// Whether there is work for `Continue`.
  bool has_backlog() const {
    return !services_.effects().backlog().empty() || !services_.memory().freed.empty();
  }
  /// What the last event has cost, in steps that do not depend on the machine.
  std::uint64_t work() const { return services_.effects().work(); }

  Counts counts() const { return inspector_.counts(); }
  /// Where operators find the numbers, and the rim counts its own.
  Inspector& inspector() { return inspector_; }

  /// What all memory is charged to, also what the rim holds for its peers.
  ServerMemory& memory() { return services_.memory(); }

  const Options& options() const { return services_.options(); }

 private:
  struct Dispatch;

  void on(const Hello& event);
  void on(const Echo& event) { sessions_.echo(event); }
  void on(const Heard& event);
  void on(const Requested& event);
  void on(const RequestedByGuest& event);
  void on(const Acknowledged& event);
  void on(const Abandoned& event);
  void on(const Heartbeat& event);
  void on(const Goodbye& event) { sessions_.goodbye(event); }
  void on(const Disconnected& event) { sessions_.disconnected(event); }
  void on(const Advance& event);
  void on(const Late& event);
  void on(const Continue& event);
  void on(const Regrant& event) { sessions_.regrant(event); }
  void on(const Configure& event) { operators_.settings.configure(event); }
  void on(const Stranger& event);
  void on(const Stop& event) { sessions_.stop(event.reason); }

  /// Returns how much was done: one timer, or so many keys.
  int fire(Timer& timer, int work_max);

  // engine_requests.cpp
  void deny(const RequestContext& context);
  std::optional<Error> refusal(const RequestContext& context, bool is_repeated);
  bool is_to_execute(const RequestContext& context, Duration timeout);
  void turn_away(const Requested& event);
  void acknowledge(Session& session, const std::vector<std::uint64_t>& request_ids);

  EngineServices services_;
  NameSpaces name_spaces_;
  Sessions sessions_;
  Inspector inspector_;
  Operators operators_;
  Instant held_until_{};  ///< no timer fires before; see Late
  FreedPieces freed_pieces_;
};

}  // namespace muster::core
