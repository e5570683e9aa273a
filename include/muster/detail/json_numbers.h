#pragma once

// What is behind muster/codec_json.h, which is the header to include: whether numbers have survived
// that they were read into an object.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE
namespace detail {

/// Whether it is negative, and its magnitude.
using WholeNumber = std::pair<bool, std::uint64_t>;

/// None: it is a fraction, or too large for any integer.
inline std::optional<WholeNumber> whole_number_of(const nlohmann::json& number) {
  if (number.is_number_unsigned()) return WholeNumber(false, number.get<std::uint64_t>());
  if (number.is_number_integer()) {
    const auto value = number.get<std::int64_t>();
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? WholeNumber(true, 0 - bits) : WholeNumber(false, bits);
  }
  constexpr double end = 18446744073709551616.0;  // of 64 bits
  const auto value = number.get<double>();
  const double magnitude = std::fabs(value);
  if (!(magnitude < end) || magnitude != std::floor(magnitude)) return std::nullopt;
  return WholeNumber(value < 0, static_cast<std::uint64_t>(magnitude));
}

/// An integer is the same number; another one is only finite, since a float has fewer digits.
inline bool keeps_number(const nlohmann::json& came, const nlohmann::json& made) {
  if (!made.is_number_float()) return whole_number_of(came) == whole_number_of(made);
  return std::isfinite(made.get<double>()) || !std::isfinite(came.get<double>());
}

inline bool keeps_numbers(const nlohmann::json& came, const nlohmann::json& made);

/// Whether each element of `these` has one of `those` that it keeps, or is kept by.
template <class Keeps>
bool have_partners(const nlohmann::json& these, const nlohmann::json& those, Keeps keeps) {
  return std::all_of(these.begin(), these.end(), [&](const nlohmann::json& one) {
    return std::any_of(those.begin(), those.end(),
                       [&](const nlohmann::json& other) { return keeps(one, other); });
  });
}

/// Of integers in another order, as those of a set: they are the ones that came. Others are not
/// looked at.
inline bool keeps_integers(const nlohmann::json& came, const nlohmann::json& made) {
  std::vector<std::optional<WholeNumber>> from;
  std::vector<std::optional<WholeNumber>> to;
  for (const nlohmann::json& each : made) {
    if (!each.is_number() || each.is_number_float()) return true;
    to.push_back(whole_number_of(each));
  }
  for (const nlohmann::json& each : came) {
    if (each.is_number()) from.push_back(whole_number_of(each));
  }
  const auto sort = [](auto& numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  };
  sort(from);
  sort(to);
  return from == to;
}

/// Of elements that may be in another order. Of many that are no numbers, that is not looked into.
inline bool keeps_set(const nlohmann::json& came, const nlohmann::json& made) {
  constexpr std::size_t paired_max = 64;
  if (!keeps_integers(came, made)) return false;
  if (came.size() > paired_max || made.size() > paired_max) return true;
  const auto kept = [](const auto& one, const auto& other) { return keeps_numbers(one, other); };
  const auto keeps = [](const auto& one, const auto& other) { return keeps_numbers(other, one); };
  return have_partners(came, made, kept) && have_partners(made, came, keeps);
}

/// Whether the numbers in `made`, which was written from what `came` was read into, are those that
/// came. What one of them has and the other has not is nobody's number.
inline bool keeps_numbers(const nlohmann::json& came, const nlohmann::json& made) {
  if (came.is_number() && made.is_number()) return keeps_number(came, made);
  if (came.is_object() && made.is_object()) {
    for (auto each = made.begin(); each != made.end(); ++each) {
      const auto found = came.find(each.key());
      if (found != came.end() && !keeps_numbers(*found, each.value())) return false;
    }
  } else if (came.is_array() && made.is_array()) {
    bool is_kept = came.size() == made.size();
    for (std::size_t at = 0; is_kept && at < made.size(); ++at) {
      is_kept = keeps_numbers(came[at], made[at]);
    }
    return is_kept || keeps_set(came, made);
  }
  return true;
}

}  // namespace detail
MUSTER_END_NAMESPACE
