#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace muster::core {

/// What there was no room below, for something that was refused. An option of the server has its
/// name. What is too large by itself is refused for its own size, and is none of these.
enum class Limit : std::uint8_t {
  // Of memory.
  memory,
  memory_share,  ///< as much as others leave to this unit
  name_space_memory,
  identity_memory,
  system_memory,  ///< the system gives no more
  // Of one session.
  parked_waits,
  cached_results,
  cached_result_bytes,
  identity_requests,  ///< of an identity, in one second
  // Of a namespace.
  waits_for_several,
  groups,
  identity_groups,
  groups_memory,  ///< of the reserve, for new groups
  open_rounds,
  // Of the server.
  sessions,
  identity_sessions,
  sessions_memory,  ///< of the reserve, for new sessions
  name_spaces,
  name_spaces_per_unit,
};

/// In their order.
inline constexpr auto limit_names = std::to_array<std::string_view>({
    "memory_bytes_max",
    "memory_share",
    "namespace_memory_bytes_max",
    "identity_memory",
    "system_memory",
    "parked_waits_max",
    "cached_results_max",
    "cached_result_bytes_max",
    "identity_requests",
    "waits_for_several_max",
    "groups_per_namespace_max",
    "identity_groups",
    "groups_memory",
    "open_rounds_max",
    "sessions_max",
    "identity_sessions",
    "sessions_memory",
    "namespaces_max",
    "namespaces_per_address_max",
});
inline constexpr std::size_t limits_count = limit_names.size();
static_assert(static_cast<std::size_t>(Limit::name_spaces_per_unit) + 1 == limits_count);

/// A number of places that owners share: connections, sessions, groups of a namespace, namespaces
/// (docs/semantics.md, R9). An owner that is alone may fill it. On top of it is a reserve, which
/// only an owner below its share may enter.
struct SharedLimit {
  std::uint64_t places_max = 0;

  std::uint64_t reserve() const { return std::max<std::uint64_t>(places_max / 8, 1); }
  std::uint64_t with_reserve() const { return places_max + reserve(); }
  /// An owner without any place is below its share, however many owners there are.
  std::uint64_t share(std::uint64_t owners_count) const {
    return std::max<std::uint64_t>(places_max / std::max<std::uint64_t>(owners_count, 1), 1);
  }
  /// Whether an owner that has `own_count` of the `taken_count` places may take one more.
  bool has_place(std::uint64_t taken_count, std::uint64_t own_count,
                 std::uint64_t owners_count) const {
    if (taken_count < places_max) return true;
    return taken_count < with_reserve() && own_count < share(owners_count);
  }
};

/// How often something was refused, by the limit. Plain data.
class Refusals {
 public:
  void count(Limit limit) {
    last_ = static_cast<std::size_t>(limit);
    ++counts_[last_];
  }
  std::uint64_t of(std::size_t limit) const { return counts_[limit]; }
  /// The limit that was counted last, once; `limits_count`: none since.
  std::size_t take_last() { return std::exchange(last_, limits_count); }

 private:
  std::array<std::uint64_t, limits_count> counts_{};
  std::size_t last_ = limits_count;
};

}  // namespace muster::core
