#pragma once

#include <optional>
#include <string>

#include "core/session/engine_services.h"
#include "core/sessions.h"
#include "wire/request_bodies.h"

namespace muster::core {

/// The end that an operator asks for: nobody begins a session any more, those who are there go on
/// until they have ended theirs, and then, or when the time is over, the rim is told. It decides
/// whether the server ends; until it does newcomers are refused.
class Draining {
 public:
  Draining(EngineServices& services, Sessions& sessions)
      : services_(services), sessions_(sessions) {}
  Draining(const Draining&) = delete;
  Draining& operator=(const Draining&) = delete;

  void ask(const RequestContext& context, const wire::Drain& request);
  /// Why nobody may begin a session with this hello.
  std::optional<Error> refusal(const Hello& event) const;
  /// After each event: whether everybody has gone.
  void look() {
    if (is_waiting_ && users_count() == 0) end();
  }
  /// Of one that was begun with a time.
  void time_is_over();

 private:
  /// Those that lose something when the server ends: all but observers.
  std::uint64_t users_count() const;
  void begin(const wire::Drain& request);
  void end();

  EngineServices& services_;
  Sessions& sessions_;
  bool is_waiting_ = false;  ///< for those who are there
  std::string reason_;
  Timer timer_{TimerKind::drain, this};
};

}  // namespace muster::core
