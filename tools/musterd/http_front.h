#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"
#include "live/api.h"
#include "muster/server.h"
#include "server/http/front.h"

namespace musterd {

/// HTTP as --http and its like ask for it.
class HttpFront {
 public:
  /// log     lives as long as it
  /// errors  as Front::start, and those of the files that the flags name (invalid_argument,
  ///         too_large, unavailable). `detail` begins with the flag that is meant
  static muster::Result<std::unique_ptr<HttpFront>> start(const Configuration& configuration,
                                                          const muster::Logger& log);

  std::string url() const { return front_->url(); }
  std::uint16_t port() const { return front_->port(); }

  /// At each turn of the server's thread: tells that it turns, and logs what the front has to say.
  void turned() {
    front_->turned();
    if (front_->has_lines()) log_lines();
  }
  /// From now on it is asked for, and shows what the server tells of itself.
  void serves(const muster::Server& server);
  /// It takes no newcomers any more; empty: it does.
  void drains(std::string_view reason);
  void ends(std::string_view reason);
  /// Tokens and certificates are read again; what cannot be read stays as it was.
  ///
  /// returns  false: there are none
  bool reload();

 private:
  /// What handlers on the front's thread look at.
  class Shown;

  HttpFront(const Configuration& configuration, const muster::Logger& log,
            std::shared_ptr<Shown> shown, std::shared_ptr<Api> api);

  void log_lines();

  const Configuration& configuration_;
  const muster::Logger& log_;
  const std::shared_ptr<Shown> shown_;
  const std::shared_ptr<Api> api_;
  std::unique_ptr<muster::server::http::Front> front_;
};

}  // namespace musterd
