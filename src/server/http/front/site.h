#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "muster/log.h"
#include "server/http/front/places.h"
#include "server/http/front/request.h"
#include "server/http/front/target.h"
#include "server/http/front/visitors/guard.h"
#include "server/http/front/visitors/host_names.h"
#include "server/http/front/visitors/sessions.h"
#include "server/http/question.h"
#include "server/http/table.h"

namespace muster::server::http {

/// Who has sent a request.
struct Caller {
  std::string address;    ///< for the log
  std::string unit;       ///< that failures are counted by
  std::string came_to;    ///< the own address of the connection
  bool has_place = true;  ///< else it is told nothing but how the server is
};

/// An answer, and what its head says beside that.
struct Reply {
  Answer answer;
  std::string more_head = {};  ///< whole lines
};

/// What is answered to whom. Knows no sockets and no clock.
class Site {
 public:
  using Log = std::function<void(LogLevel level, std::string_view line)>;

  Site(std::vector<Route> routes, const std::vector<std::string>& names, const Limits& limits,
       Log log);

  const Limits& limits() const { return limits_; }

  enum class Transport { plain, tls };
  /// Only those with a token are answered, but for what /healthz and /readyz say. A browser shows
  /// it in a form, and has a cookie from then on.
  void ask_for_token(Transport transport, Sessions::Random random);
  void set_tokens(std::vector<TokenHolder> tokens) { guard_.set_tokens(std::move(tokens)); }
  void set_phase(Phase phase, std::string reason);
  /// The server's count of its turns, to be told about once a second.
  void see_turns(std::uint64_t turns, base::Instant now);

  /// Whether the body of such a request is waited for. It is small.
  bool takes_body(const Request& request) const;
  /// position  of an answer that goes on; 0: it begins
  Reply reply(const Request& request, const Caller& caller, base::Instant now,
              std::uint64_t position = 0);
  /// Whether what is asked for may go on, and so needs a place.
  bool may_go_on(const Request& request) const;
  /// returns  null: there are too many
  Places::Place take_stream(const Caller& caller) { return streams_->take(caller.unit); }
  /// So much is on its way to those who have a stream.
  std::uint64_t& stream_bytes() { return *stream_bytes_; }
  /// To who has no place.
  Reply reply_to_crowd() const;
  /// To what is no request.
  ///
  /// why  a sentence: what is wrong, and what to do
  static Reply refusal(int status, std::string_view why);

 private:
  void log(LogLevel level, std::string_view line) const { log_(level, line); }
  Reply reply_of_health(base::Instant now) const;
  Reply reply_of_readiness(base::Instant now) const;
  const Route* route_for(std::string_view path) const;
  Reply reply_of_routes(const Target& target, const Request& request, Right right,
                        std::uint64_t position) const;
  Reply reply_of_stranger(const Guard::Judgement& judgement, const Caller& caller,
                          const Request& request) const;
  Guard::Judgement judge(const Request& request, const Caller& caller, base::Instant now);
  Reply reply_to_form(const Request& request, const Caller& caller, base::Instant now);
  Reply log_in(const Request& request, const Caller& caller, base::Instant now);
  std::string_view cookie_name() const;
  Reply with_cookie(std::string_view value, std::chrono::seconds age) const;

  std::vector<Route> routes_;
  HostNames names_;
  Limits limits_;
  Log log_;
  Guard guard_;
  std::optional<Sessions> sessions_;  ///< none: nobody is asked for a token
  Transport transport_ = Transport::plain;
  Phase phase_ = Phase::starting;
  std::string reason_ = "it starts";
  std::uint64_t turns_ = 0;
  base::Instant last_turn_{};
  std::shared_ptr<Places> streams_;
  std::shared_ptr<std::uint64_t> stream_bytes_ = std::make_shared<std::uint64_t>(0);
};

/// "Not Found".
std::string_view phrase_of(int status);

}  // namespace muster::server::http
