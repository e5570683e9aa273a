#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "server/http/tokens.h"

namespace muster::server::http {

/// Browsers that have logged in: each has a random name in a cookie, which stands for the token
/// that was shown. Here is only the digest of that name.
class Sessions {
 public:
  /// Fills bytes that nobody can guess. Returns whether there were such.
  using Random = std::function<bool(void* bytes, std::size_t size)>;

  explicit Sessions(Random random) : random_(std::move(random)) {}

  /// token    digest of the one that was shown
  /// returns  the name; nothing: the system gives no random numbers
  std::optional<std::string> begin(const Digest& token, base::Instant now);
  /// The digest of the token for which it stands; null: there is no such session, or it is over.
  const Digest* find(std::string_view name, base::Instant now) const;
  void end(std::string_view name);

  static constexpr std::chrono::hours lifetime{12};

 private:
  static constexpr std::size_t sessions_max = 256;

  struct Session {
    Digest token;
    base::Instant until;
  };

  void make_room(base::Instant now);

  Random random_;
  std::map<Digest, Session> sessions_;
};

}  // namespace muster::server::http
