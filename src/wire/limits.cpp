#include <algorithm>
#include <initializer_list>
#include <limits>

#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/request.h"

namespace muster::wire {
namespace {

// In every body: the request's prefix with its ids, fixed fields, names, optional fields.
constexpr std::uint64_t fixed_bytes = 8ULL * ids_per_frame_max + (512U << 10);
// A list's entry beside its key, a member beside its info, a rank in the ranges of an error.
constexpr std::uint64_t entry_bytes = 32;
constexpr std::uint64_t path_bytes = 128;
constexpr std::uint64_t member_bytes = 45 + 2 * name_bytes_max;
constexpr std::uint64_t range_bytes = 8;

std::uint64_t each_key_bytes(const ServerLimits& limits) {
  return std::min<std::uint64_t>(limits.key_bytes_max + entry_bytes,
                                 std::numeric_limits<std::uint32_t>::max());
}

std::uint64_t keys_bytes(const ServerLimits& limits) {
  return limits.keys_per_operation_max * each_key_bytes(limits);
}

std::uint64_t values_bytes(const ServerLimits& limits) {
  return std::max<std::uint64_t>(limits.round_bytes_max, limits.value_bytes_max);
}

/// Only sums of numbers that were capped before can be made with it, so nothing wraps.
std::uint32_t capped(std::initializer_list<std::uint64_t> parts) {
  constexpr std::uint64_t max = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts) sum = std::min(max, sum + std::min(max, part));
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

std::uint32_t ServerLimits::request_bytes_max() const {
  const std::uint32_t data =
      capped({values_bytes(*this), keys_bytes(*this), std::uint64_t{world_size_max} * 4});
  const std::uint32_t streams = streams_per_recover_max * 12;
  return capped({fixed_bytes, std::max(data, streams)});
}

std::uint32_t ServerLimits::essential_bytes_max() const {
  const std::uint64_t streams = streams_per_recover_max * 12;
  return capped({fixed_bytes, std::max(keys_bytes(*this), streams)});
}

std::uint32_t ServerLimits::reply_bytes_max() const {
  const std::uint64_t ranks = world_size_max;
  const std::uint64_t streams = streams_per_recover_max;
  const std::uint32_t data = capped({values_bytes(*this), ranks * (4 + range_bytes), streams * 8,
                                     std::uint64_t{keys_per_operation_max} * 5});
  const std::uint64_t entries = std::max(keys_per_operation_max, list_entries_max);
  const std::uint32_t page = capped({entries * each_key_bytes(*this), entries * path_bytes});
  // The infos of all together are no more than a round's values.
  const std::uint32_t members =
      capped({values_bytes(*this), (ranks + candidates_listed_max) * member_bytes});
  return capped({fixed_bytes, std::max({data, page, members})});
}

}  // namespace muster::wire
