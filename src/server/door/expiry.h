#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "auth/utc_time.h"
#include "muster/log.h"

namespace muster::server {

/// Until when a server can use a certificate or a credential line.
struct Validity {
  enum class Of {
    server,     ///< its own certificate, or one of the chain
    authority,  ///< a certificate that signs those of clients
    credential  ///< a line of the credentials file that has `not-after`
  };

  Of of;
  std::string name;  ///< for the log
  auth::UtcTime not_before;
  auth::UtcTime not_after;  ///< the last second
};

/// Warns of certificates and credential lines that expire: from 14 days before, once a day, and
/// when one of them expires or becomes valid.
class ExpiryWarnings {
 public:
  using Lines = std::vector<std::pair<LogLevel, std::string>>;

  static constexpr std::chrono::hours warned_before{14 * 24};
  static constexpr std::chrono::hours interval{24};
  static constexpr std::size_t lines_max = 20;

  /// Other certificates and lines are used from now on: the next `take` warns of them.
  void replace(std::vector<Validity> all);
  /// What to log now; mostly nothing. Costs next to nothing then.
  Lines take(auth::UtcTime now);

  /// When the first certificate expires, or has expired; nothing: there is none. Of credential
  /// lines only those count that have not expired yet: that may be meant, as of a guest.
  std::optional<auth::UtcTime> expiry(Validity::Of of, auth::UtcTime now) const;

 private:
  std::vector<Validity> all_;
  auth::UtcTime next_{};  ///< when there may be something to log
};

}  // namespace muster::server
