#include "server/system_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/failure.h"

namespace muster::server {
namespace {

/// Version 1 has no word for "no limit", but the highest number of pages.
constexpr std::uint64_t no_limit_min = std::uint64_t{1} << 62;

std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// How the two versions differ.
struct Version {
  std::string_view file_system;
  std::string_view controller;  ///< empty: there is one hierarchy for all
  std::string_view limit_file;
};
constexpr Version versions[] = {{"cgroup2", "", "memory.max"},
                                {"cgroup", "memory", "memory.limit_in_bytes"}};

/// The path of the process's cgroup in its hierarchy: a line "NUMBER:CONTROLLERS:PATH".
std::optional<std::string_view> path_of(const Version& version, std::string_view cgroups) {
  for (const std::string_view line : split(cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_one = version.controller.empty()
                            ? controllers.empty()
                            : contains(split(controllers, ','), version.controller);
    if (is_one) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string_view root;  ///< the cgroup that is mounted
  std::string_view place;
};

/// A line "ID PARENT DEVICE ROOT PLACE OPTIONS... - TYPE SOURCE OPTIONS".
std::optional<Mount> mount_of(const Version& version, std::string_view mounts) {
  for (const std::string_view line : split(mounts, '\n')) {
    const std::size_t end = line.find(" - ");
    if (end == line.npos) continue;
    const auto before = split(line.substr(0, end), ' ');
    const auto after = split(line.substr(end + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || after[0] != version.file_system) continue;
    if (!version.controller.empty() && !contains(split(after[2], ','), version.controller))
      continue;
    return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

/// Nothing: there is no limit, or it is no number.
std::optional<std::uint64_t> limit_in(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (read.ec != std::errc{} || bytes >= no_limit_min) return std::nullopt;
  return bytes;
}

/// Where the process's cgroup is below a mount. A container may see its own as the root of all; and
/// one that was moved out of what it sees has no place there, but the root's limit all the same.
std::string_view path_below(std::string_view path, std::string_view root) {
  if (root != "/") {
    if (!path.starts_with(root)) return {};
    path.remove_prefix(root.size());
  }
  if (path.find("/..") != path.npos) return {};
  return path == "/" ? std::string_view() : path;
}

std::string in_mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void take_lower(std::optional<SystemMemoryLimit>& lowest, std::optional<SystemMemoryLimit> other) {
  if (other && (!lowest || other->bytes < lowest->bytes)) lowest = std::move(other);
}

}  // namespace

std::optional<SystemMemoryLimit> cgroup_memory_limit(
    std::string_view cgroups, std::string_view mounts,
    const std::function<std::optional<std::string>(const std::string& path)>& read) {
  std::optional<SystemMemoryLimit> lowest;
  for (const Version& version : versions) {
    const auto path = path_of(version, cgroups);
    const auto mount = mount_of(version, mounts);
    if (!path || !mount) continue;
    std::string folder = std::string(mount->place) + std::string(path_below(*path, mount->root));
    for (;;) {
      const auto bytes = limit_in(read(folder + "/" + std::string(version.limit_file)));
      if (bytes) {
        take_lower(lowest, SystemMemoryLimit{*bytes, std::string(version.limit_file) +
                                                         " of the cgroup " + folder});
      }
      if (folder.size() <= mount->place.size()) break;
      folder.resize(std::max(folder.rfind('/'), mount->place.size()));
    }
  }
  return lowest;
}

std::optional<SystemMemoryLimit> system_memory_limit() {
  std::optional<SystemMemoryLimit> lowest =
      cgroup_memory_limit(text_of("/proc/self/cgroup").value_or(""),
                          text_of("/proc/self/mountinfo").value_or(""), text_of);
  rlimit address_space{};
  if (::getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    take_lower(lowest, SystemMemoryLimit{address_space.rlim_cur, "RLIMIT_AS (ulimit -v)"});
  }
  return lowest;
}

Result<std::string> fit_memory(ServerOptions& options,
                               const std::optional<SystemMemoryLimit>& limit) {
  const std::uint64_t needed_bytes = process_memory_bytes(options.memory_bytes_max);
  if (!limit || needed_bytes <= limit->bytes) return std::string();
  const bool is_too_low = limit->bytes < process_memory_bytes_min;
  if (is_too_low && options.standalone) {
    Error error = base::failure(ErrorCode::resource_exhausted,
                                "the memory of this process is limited to " +
                                    in_mebibytes(limit->bytes) + " by " + limit->name +
                                    "; a server needs " + in_mebibytes(process_memory_bytes_min));
    error.actual = limit->bytes;
    error.limit = process_memory_bytes_min;
    return error;
  }
  const std::uint64_t left_bytes =
      std::max(limit->bytes, process_memory_bytes_min) - fixed_memory_bytes;
  const std::uint64_t fitting_bytes = std::min(left_bytes / 9 * 8, options.memory_bytes_max);
  std::string what = "memory-bytes-max is " + std::to_string(options.memory_bytes_max) +
                     ", with which the process takes " + std::to_string(needed_bytes) +
                     " bytes; the limit (" + limit->name + ") is " + std::to_string(limit->bytes) +
                     "; reduced to " + std::to_string(fitting_bytes);
  const bool is_reduced = fitting_bytes < options.memory_bytes_max;
  options.memory_bytes_max = fitting_bytes;
  for (std::uint64_t* const part :
       {&options.namespace_memory_bytes_max, &options.tcpstore_memory_bytes_max}) {
    *part = std::min(*part, fitting_bytes);
  }
  return is_reduced ? what : std::string();
}

}  // namespace muster::server
