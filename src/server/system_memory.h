#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "muster/server.h"

namespace muster::server {

/// A limit of the system's on the memory of this process.
struct SystemMemoryLimit {
  std::uint64_t bytes = 0;
  std::string name;  ///< such as "memory.max of the cgroup /sys/fs/cgroup/jobs"
};

/// The lowest limit of the memory cgroup of a process and of its ancestors, of version 1 or 2. A
/// process sees those that are mounted for it.
///
/// cgroups  /proc/self/cgroup
/// mounts   /proc/self/mountinfo
/// read     the text of a file; nothing: it cannot be read
/// returns  nothing: there is no limit
std::optional<SystemMemoryLimit> cgroup_memory_limit(
    std::string_view cgroups, std::string_view mounts,
    const std::function<std::optional<std::string>(const std::string& path)>& read);

/// What the system gives this process: the lowest limit of its memory cgroups and RLIMIT_AS.
std::optional<SystemMemoryLimit> system_memory_limit();

/// What a server needs: an eighth more than its `memory_bytes_max`, and a fixed part.
inline constexpr std::uint64_t fixed_memory_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t process_memory_bytes(std::uint64_t memory_bytes_max) {
  return memory_bytes_max + memory_bytes_max / 8 + fixed_memory_bytes;
}
/// With less a process that only serves does not start.
inline constexpr std::uint64_t process_memory_bytes_min = std::uint64_t{80} << 20;

/// Reduces the memory that the server may use to what fits below `limit`. An embedded server is
/// never refused, and keeps what `process_memory_bytes_min` leaves it: its process may need much
/// less, or have a limit for another reason.
///
/// returns  what was reduced, for the log; empty: it fits
/// errors   resource_exhausted (a process that only serves has less than it needs)
Result<std::string> fit_memory(ServerOptions& options,
                               const std::optional<SystemMemoryLimit>& limit);

}  // namespace muster::server
