#include "support/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tools {
namespace {

/// How many letters must be put in, left out, replaced, or swapped with their neighbour.
std::size_t distance_of(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before_last(right.size() + 1);
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool are_swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (are_swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[right.size()];
}

}  // namespace

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t given_bytes_max = 64;  // nobody means anything by more
  if (given.size() > given_bytes_max) return "";
  const std::string* nearest = nullptr;
  std::size_t least = given.size() / 3 + 1;
  for (const std::string& each : known) {
    const bool is_cut = given.size() >= 3 && each.starts_with(given);
    const std::size_t distance = is_cut ? 1 : distance_of(given, each);
    if (distance >= least) continue;
    least = distance;
    nearest = &each;
  }
  return nearest == nullptr ? "" : "; did you mean \"" + *nearest + "\"?";
}

}  // namespace tools
