#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "auth/certificate.h"
#include "auth/identity.h"
#include "auth/key.h"
#include "auth/problems.h"
#include "muster/result.h"

namespace muster::auth {

inline constexpr std::size_t credentials_bytes_max = 1 << 20;
inline constexpr std::size_t credentials_lines_max = 10'000;
inline constexpr std::size_t credentials_line_bytes_max = 1024;
inline constexpr std::size_t keys_of_identity_max = 2;  ///< the old one and the new one

/// A user or a group of the system, of whom a process at the other end of a Unix socket is.
struct UnixUser {
  enum class Kind { user, group };

  Kind kind = Kind::user;
  std::uint32_t number = 0;

  friend bool operator==(const UnixUser&, const UnixUser&) = default;
};

/// What somebody proves who he is by. No two credentials have the same one.
using Proof = std::variant<Key, UnixUser, CertificatePattern>;

/// One line of the file.
struct Credential {
  Proof proof;
  Grant grant;
  std::size_t line = 0;  ///< from 1
};

/// Whether both are the same key, user or pattern.
bool is_same(const Proof& a, const Proof& b);

/// Who is known, how he proves it, and what he may: the content of a credentials file, as
/// docs/security.md says. It never changes; a file that was changed is read into another one.
class Credentials {
 public:
  struct Reading;

  /// Nobody is known.
  Credentials() = default;

  /// Reads all of the text, and tells all that is wrong with it. The keys in `text` are the
  /// caller's to overwrite.
  ///
  /// errors  invalid_argument (detail: the first 20 problems, by lines; actual: how many),
  ///         too_large (limit, actual: the bytes or the lines). No error has anything of the text
  static Result<Credentials> read(std::string_view text);
  /// The same with each problem by itself, of a text that is not too large.
  static Reading read_with_problems(std::string_view text);

  /// In the order of their lines.
  const std::vector<Credential>& all() const { return all_; }

  /// To which all identities belong; empty: to several, or there are none.
  std::string only_tenant() const;

  /// The position in `all()` of the same proof; nothing: there is none.
  std::optional<std::size_t> find(const Proof& proof) const;
  /// The credential of a process with that user and that group; the user counts more. Null: none.
  const Credential* find_unix(std::uint32_t uid, std::uint32_t gid) const;
  /// The credential of a certificate, by the pattern that counts most (`patterns_of`). Null: none.
  const Credential* find_certificate(const CertificateNames& names) const;

 private:
  const Credential* at(std::optional<std::size_t> position) const {
    return position ? &all_[*position] : nullptr;
  }

  std::vector<Credential> all_;
  std::vector<std::size_t> by_proof_;  ///< positions, in the order of proofs
};

/// What came of reading a text: credentials, or what is wrong, in no order.
struct Credentials::Reading {
  Credentials credentials;
  std::vector<Problem> problems;
};

}  // namespace muster::auth
