#include "net/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace muster::net {
namespace {

const std::string groups_folder = "/sys/fs/cgroup";

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Of this process among the control groups of version 2, such as "/" or "/system.slice/x".
std::string own_group() {
  constexpr std::string_view begin = "0::";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with(begin)) return line.substr(begin.size());
  }
  return "/";
}

/// The least of the group's and of those that it is in.
std::size_t cores_of_group() {
  std::size_t least = SIZE_MAX;
  std::string group = own_group();
  for (;;) {
    const auto cores = cores_of_quota(content_of(groups_folder + group + "/cpu.max"));
    least = std::min(least, cores.value_or(SIZE_MAX));
    const std::size_t parent = group.rfind('/');
    if (parent == std::string::npos || group.size() <= 1) break;
    group.resize(std::max<std::size_t>(parent, 1));
  }
  const std::string older = groups_folder + "/cpu/cpu.cfs_";  // version 1, as in a container
  const auto cores =
      cores_of_quota(content_of(older + "quota_us") + " " + content_of(older + "period_us"));
  return std::min(least, cores.value_or(SIZE_MAX));
}

std::size_t cores_of_affinity() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&cores));
}

}  // namespace

std::optional<std::size_t> cores_of_quota(std::string_view cpu_max) {
  long quota_us = 0;
  long period_us = 0;
  const char* const end = cpu_max.data() + cpu_max.size();
  const auto quota = std::from_chars(cpu_max.data(), end, quota_us);
  if (quota.ec != std::errc() || quota_us <= 0) return std::nullopt;  // "max", or -1 in version 1
  const char* at = quota.ptr;
  while (at != end && (*at == ' ' || *at == '\n')) ++at;
  if (std::from_chars(at, end, period_us).ec != std::errc() || period_us <= 0) return std::nullopt;
  return std::max<std::size_t>(static_cast<std::size_t>(quota_us / period_us), 1);
}

std::size_t usable_cores() {
  static const std::size_t of_group = cores_of_group();  // six files, which a connect need not read
  return std::max<std::size_t>(std::min(cores_of_affinity(), of_group), 1);
}

}  // namespace muster::net
