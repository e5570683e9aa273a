#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/rights.h"
#include "auth/utc_time.h"

namespace muster::auth {

/// Who somebody is. Each of the two names has 1 to 64 letters, digits, `_`, `.` and `-` of ASCII.
struct Identity {
  std::string tenant;  ///< whom groups belong to
  std::string name;

  friend std::strong_ordering operator<=>(const Identity&, const Identity&) = default;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Whether it may be a tenant, or a name in one.
bool is_part_of_identity(std::string_view text);

/// Reads "TENANT/NAME", or "NAME", which is its own tenant.
std::optional<Identity> read_identity(std::string_view text);

/// As `read_identity` reads it, without the tenant where it is the name.
std::string to_string(const Identity& identity);

/// What an identity may have at most, all of its connections together; 0: what the server allows.
struct Limits {
  std::uint32_t connections = 0;
  std::uint32_t sessions = 0;
  std::uint32_t groups = 0;
  std::uint32_t requests_per_second = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Some of the namespaces, by patterns.
class NamespacePatterns {
 public:
  /// None.
  NamespacePatterns() = default;

  /// Reads patterns, several by commas: a name; the beginning of names, and `*`; `""`, which is the
  /// default namespace. `*` alone: all of them, the default one too. A name has at most 64 bytes,
  /// of UTF-8 without control characters, spaces, commas, quotes and `*`.
  static std::optional<NamespacePatterns> read(std::string_view text);

  bool allows(std::string_view name_space) const;

  /// As `read` reads it.
  friend std::string to_string(const NamespacePatterns& patterns);
  friend bool operator==(const NamespacePatterns&, const NamespacePatterns&) = default;

 private:
  struct Pattern {
    std::string text;
    bool is_beginning = false;  ///< else it is the whole name

    friend bool operator==(const Pattern&, const Pattern&) = default;
  };

  static std::optional<Pattern> read_pattern(std::string_view text);

  std::vector<Pattern> patterns_;
};

/// What somebody may who has proved to be that identity.
struct Grant {
  Identity identity;
  NamespacePatterns namespaces;
  Rights rights;  ///< the same in all of these namespaces
  Limits limits;
  std::optional<UtcTime> not_after;  ///< the last instant at which it holds; nothing: always

  friend bool operator==(const Grant&, const Grant&) = default;
};

}  // namespace muster::auth
