#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "auth/credentials.h"
#include "muster/result.h"

namespace muster::auth {

/// What a client names a key by. It is derived from the key, and tells nobody else whose it is.
struct KeyId {
  std::array<std::uint8_t, 8> bytes{};

  /// Its bytes, the first one most significant.
  std::uint64_t number() const;

  friend std::strong_ordering operator<=>(const KeyId&, const KeyId&) = default;
  friend bool operator==(const KeyId&, const KeyId&) = default;
};

/// The ids of all keys of some credentials. Whoever has the cryptography gives the derivation,
/// which may differ by the server's name.
class KeyIds {
 public:
  using Derive = std::function<KeyId(const Key&)>;

  /// None.
  KeyIds() = default;

  /// errors  invalid_argument: two keys have one id (detail: their lines)
  static Result<KeyIds> of(const Credentials& credentials, const Derive& derive);

  /// The position in `Credentials::all()`; nothing: no key has that id.
  std::optional<std::size_t> find(const KeyId& id) const;

  /// A position in `Credentials::all()`.
  struct Near {
    std::size_t position;
    bool has_id;  ///< else the key there has another one
  };
  /// The same, and else the position of a key nearby: for who takes as long with an id that nobody
  /// has. Nothing: there are no keys.
  std::optional<Near> find_near(const KeyId& id) const;

 private:
  std::vector<std::pair<KeyId, std::size_t>> positions_;  ///< by ids
};

}  // namespace muster::auth
