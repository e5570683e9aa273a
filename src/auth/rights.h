#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "wire/rights.h"

namespace muster::auth {

/// A set of rights. Who has `admin` has all that a job needs, too; `any` is in every set.
class Rights {
 public:
  /// What a job needs.
  static constexpr std::array of_job = {wire::Right::read, wire::Right::write, wire::Right::join,
                                        wire::Right::observe, wire::Right::supervise};

  constexpr Rights() = default;
  constexpr Rights(std::initializer_list<wire::Right> rights) {
    for (const wire::Right right : rights) add(right);
  }

  constexpr void add(wire::Right right) {
    mask_ |= bit_of(right);
    if (right != wire::Right::admin) return;
    for (const wire::Right each : of_job) mask_ |= bit_of(each);
  }
  constexpr bool has(wire::Right right) const { return (mask_ & bit_of(right)) != 0; }
  constexpr bool is_empty() const { return mask_ == bit_of(wire::Right::any); }

  /// Those that both have.
  friend constexpr Rights operator&(Rights a, Rights b) {
    a.mask_ &= b.mask_;
    return a;
  }
  friend constexpr bool operator==(Rights, Rights) = default;

 private:
  static constexpr std::uint32_t bit_of(wire::Right right) {
    return std::uint32_t{1} << static_cast<unsigned>(right);
  }
  std::uint32_t mask_ = bit_of(wire::Right::any);
};

/// What a session of that role may have at most.
Rights rights_of(wire::Role role);

/// Reads names of rights, several by commas, and `all`, which is `Rights::of_job`.
///
/// returns  nothing: there is no such name, or one that adds nothing to those before it
std::optional<Rights> read_rights(std::string_view text);

/// As `read_rights` reads it, with as few names as there can be; empty: none.
std::string to_string(Rights rights);

}  // namespace muster::auth
