#pragma once

#include <cstdint>

#include "wire/reply.h"

namespace muster::core {

/// A page of a list ends behind the entry with which it becomes so long.
inline constexpr std::uint64_t page_bytes_max = 64u << 10;

/// So many entries that are not for who asks are passed over in one step.
inline constexpr std::uint64_t unseen_per_step = 8;

// What an entry takes on a page.

inline std::uint64_t encoded_bytes(const ProcessInfo& process) {
  return 28 + process.host.size() + process.label.size();
}
inline std::uint64_t encoded_bytes(const wire::SessionEntry& entry) {
  return 25 + (entry.key != 0 ? 8 : 0) + encoded_bytes(entry.process);
}
inline std::uint64_t encoded_bytes(const wire::WaiterEntry& entry) {
  return 32 + encoded_bytes(entry.process) + entry.operation.size() + entry.target.size();
}
inline std::uint64_t encoded_bytes(const wire::GroupEntry& entry) { return 40 + entry.name.size(); }
inline std::uint64_t encoded_bytes(const wire::NameSpaceEntry& entry) {
  return 33 + (entry.idle ? 8 : 0) + entry.name.size() + entry.maker.size();
}
inline std::uint64_t encoded_bytes(const wire::ListEntry& entry) {
  return 14 + (entry.ttl ? 8 : 0) + entry.name.size();
}

}  // namespace muster::core
