#pragma once

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace muster::base {

/// The pid by which people on this host find this process: another one than getpid() says where
/// musterrun has started it in a PID namespace.
inline std::uint32_t host_pid() {
  const auto own = static_cast<std::uint32_t>(::getpid());
  // "PID:PID_ON_THE_HOST": of the process that musterrun has started, not of those that inherit it.
  const char* const told = std::getenv("MUSTER_HOST_PID");
  if (told == nullptr) return own;
  const char* const end = told + std::strlen(told);
  std::uint32_t inner = 0;
  std::uint32_t outer = 0;
  const auto first = std::from_chars(told, end, inner);
  if (first.ec != std::errc() || inner != own || first.ptr == end || *first.ptr != ':') return own;
  const auto second = std::from_chars(first.ptr + 1, end, outer);
  return second.ec == std::errc() && second.ptr == end && outer != 0 ? outer : own;
}

}  // namespace muster::base
