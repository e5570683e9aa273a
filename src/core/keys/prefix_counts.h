#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace muster::core {

/// How many keys begin alike, up to their first "/", or one of the next. Bounded, whatever the keys
/// are called.
class PrefixCounts {
 public:
  struct Sum {
    std::uint64_t keys = 0;
    std::uint64_t value_bytes = 0;
  };

  /// slashes_max  so many are in a prefix at most
  explicit PrefixCounts(std::uint32_t slashes_max = 1) : slashes_max_(slashes_max) {}

  void add(std::string_view key, std::uint64_t value_bytes) {
    const std::string_view prefix = prefix_of(key);
    auto found = sums_.find(prefix);
    if (found == sums_.end() && sums_.size() < prefixes_max)
      found = sums_.emplace(std::string(prefix), Sum{}).first;
    Sum& sum = found == sums_.end() ? others_ : found->second;
    ++sum.keys;
    sum.value_bytes += value_bytes;
  }

  /// By prefix; that of keys without a "/" is empty.
  const std::map<std::string, Sum, std::less<>>& sums() const { return sums_; }
  /// Of keys with further prefixes.
  const Sum& others() const { return others_; }

 private:
  static constexpr std::size_t prefixes_max = 1024;
  static constexpr std::size_t prefix_bytes_max = 128;

  std::string_view prefix_of(std::string_view key) const {
    key = key.substr(0, prefix_bytes_max);
    std::size_t end = 0;
    for (std::uint32_t count = 0; count < slashes_max_; ++count) {
      const std::size_t slash = key.find('/', end);
      if (slash == key.npos) break;
      end = slash + 1;
    }
    return key.substr(0, end);
  }

  std::uint32_t slashes_max_;
  std::map<std::string, Sum, std::less<>> sums_;
  Sum others_;
};

}  // namespace muster::core
