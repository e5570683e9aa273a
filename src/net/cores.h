#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace muster::net {

/// How many cores this process can keep busy: those that it may run on, or fewer if its control
/// group's quota is fewer; at least 1. The first call of a process reads the quota, from files of
/// the system.
std::size_t usable_cores();

/// Of the text of a `cpu.max`, as "150000 100000" of microseconds, of which the second is the
/// period; rounded down, at least 1. Nothing: there is no quota.
std::optional<std::size_t> cores_of_quota(std::string_view cpu_max);

}  // namespace muster::net
