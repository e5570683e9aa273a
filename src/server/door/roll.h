#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "auth/credentials.h"
#include "auth/key_ids.h"
#include "muster/result.h"
#include "net/tls/library.h"

namespace muster::server {

/// Who is known, with what is derived of their keys for one server name. It never changes.
class Roll {
 public:
  /// Whether somebody may come by a key; else nothing is derived, and no TLS needed.
  enum class Keys { used, unused };

  /// errors  invalid_argument, too_large (see `auth::Credentials::read`), unsupported (TLS is not
  ///         there)
  static Result<std::shared_ptr<const Roll>> read(std::string_view text,
                                                  std::string_view server_name, Keys keys);

  const auth::Credentials& credentials() const { return credentials_; }
  /// The position in `credentials().all()`; nothing: nobody has the key with that id.
  std::optional<std::size_t> find_key(std::string_view id) const;
  /// The same, and puts the secret of that key. With an id that nobody has it leaves `secret` as it
  /// is, and takes as long.
  std::optional<std::size_t> find_secret(std::string_view id, unsigned char* secret) const;
  std::size_t identities_count() const;

 private:
  Roll() = default;

  std::optional<Error> derive_keys(std::string_view server_name);

  auth::Credentials credentials_;
  auth::KeyIds ids_;
  std::vector<net::tls::Secret> secrets_;  ///< by position; of what is no key: not used
};

}  // namespace muster::server
