#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/memory/charged_memory.h"
#include "core/memory/server_memory.h"
#include "core/session/answer_cache.h"
#include "core/session/clock.h"
#include "core/session/effect_list.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "core/session/tallies/counted.h"
#include "core/session/timers.h"

namespace muster::core {

/// What the engine gives to keys and groups: its time, its limits, and the way to answer. They know
/// this and each other's sessions, never the engine.
///
/// A request's answer: made in the event that brings the request, or later (parked) -> sent as an
/// effect -> kept until the client has acknowledged it, if the request changed something.
class EngineServices {
 public:
  explicit EngineServices(Options options);
  ~EngineServices();
  EngineServices(const EngineServices&) = delete;
  EngineServices& operator=(const EngineServices&) = delete;

  const Options& options() const { return options_; }
  ServerMemory& memory() { return memory_; }
  const ServerMemory& memory() const { return memory_; }
  TimerWheel& timers() { return timers_; }
  const TimerWheel& timers() const { return timers_; }
  Instant now() const { return clock_.now(); }
  Clock& clock() { return clock_; }
  /// Time since the last byte of `session`, not counting what the server itself slept.
  Duration silence(const Session& session) const { return clock_.since(session.liveness.heard); }

  /// A number that was never given before under this incarnation.
  std::uint64_t next_epoch() { return ++counted_.epochs_formed; }

  /// Parks the request: it will be answered later, at the latest at its deadline. Null when the
  /// session has parked too many; the request has been answered `resource_exhausted` then.
  Parked* park(const RequestContext& context);

  /// Answers a request in hand. Cached until acknowledged when the operation changes something
  /// or `on_acknowledged` is set.
  void answer(const RequestContext& context, Answer&& answer);
  void fail(const RequestContext& context, Error error);
  /// As above, but a repetition of the request is tried anew: nothing was done.
  void turn_away(const RequestContext& context, Error error);

  /// Answers a parked request; `parked` is destroyed. Adds elapsed time to an error.
  void answer(Parked& parked, Answer&& answer);
  void fail(Parked& parked, Error error);

  /// Retains `bytes` of the current request: as a copy, or with all the memory that the request
  /// arrived in. A copy that is too long for this event is made by later ones. Null when the quota
  /// or the system refuses.
  Payload retain(Quota& quota, std::string_view bytes, Charging charging);

  /// Who came last and cannot be in a group, for groups that miss somebody; empty: nobody.
  std::string& stranger() { return stranger_; }

  /// For events and log lines; answers go through here.
  EffectList& effects() { return effects_; }
  const EffectList& effects() const { return effects_; }

  /// What is held, counted where it comes and goes, and what happens, where it does; the engine
  /// adds sessions and memory.
  Counted& counted() { return counted_; }
  const Counted& counted() const { return counted_; }

  // For the engine.

  /// Begins an event: what the last one left is forgotten, time goes on.
  void begin_event(Instant now);
  /// The current request arrived in `memory`; null: it cannot be retained.
  void set_request_memory(ChargedMemory* memory) { request_memory_.received = memory; }
  /// Whether the request came before: then it waits where it waited, or gets the answer that it
  /// got.
  bool repeats(Session& session, std::uint64_t request_id, Duration timeout);
  AnswerCache& cache() { return cache_; }
  // The client has given up: it is not answered.

  void abandon_wait(Session& session, std::uint64_t request_id);
  /// returns  what acknowledging the answer would have meant; nothing: there was no answer, or what
  ///          it had taken is given back
  std::optional<OnAcknowledged> abandon_answer(Session& session, std::uint64_t request_id);
  /// What a take or a pop of this id has brought is there again; its answer is `cancelled` from
  /// now on, and is not sent. False: it has brought nothing, its answer was acknowledged, or it
  /// cannot be given back.
  bool give_back(Session& session, std::uint64_t request_id);
  /// The session ends, with all that it waits for.
  void forget(Session& session);

 private:
  friend class LiveSettings;  // which changes options
  /// The memory that the current request arrived in. The request's long values are not copied: they
  /// retain this memory.
  struct RequestMemory {
    ChargedMemory* received = nullptr;  ///< null: it cannot be retained
    Payload retained;                   ///< all of it; the request's views stay valid
  };
  using TakenParked = ParkedByRequest::node_type;
  TakenParked take(Parked& parked);
  void deliver(Session& session, std::uint64_t request_id, wire::Operation operation,
               Answer&& answer);
  void log_limit(const Session& session, const Error& error);

  Options options_;
  ServerMemory memory_;
  TimerWheel timers_;
  Clock clock_;
  Counted counted_;
  std::string stranger_;
  std::array<Instant, limits_count> logged_limits_{};  ///< when the last refusal was logged
  AnswerCache cache_{counted_.held.cached_results};
  EffectList effects_;
  RequestMemory request_memory_;
};

/// The answer that `error` is.
Answer error_answer(const Error& error);

}  // namespace muster::core
