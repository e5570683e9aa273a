#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "muster/config.h"

// Owned bytes are a `std::string`, borrowed bytes a `std::string_view`, as in LevelDB, gRPC and
// Protocol Buffers. They may hold any bytes, also zeros.

MUSTER_BEGIN_NAMESPACE

/// Durations of the public interface. Every timeout is of this type or converts to it.
using Duration = std::chrono::microseconds;

/// Identifies one process: a random number drawn at its start. Host and pid would not do: in
/// containers every process may be pid 1 on a host of the same name.
struct ProcessId {
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const ProcessId& a, const ProcessId& b) { return a.bytes == b.bytes; }
  friend bool operator!=(const ProcessId& a, const ProcessId& b) { return !(a == b); }
  friend bool operator<(const ProcessId& a, const ProcessId& b) { return a.bytes < b.bytes; }
};

/// The 32 hexadecimal digits of `id`.
MUSTER_API std::string to_string(const ProcessId& id);

/// Describes the process behind a store; errors at other processes show it.
struct ProcessInfo {
  ProcessId id;           ///< all zero: unknown
  std::string host;       ///< host name, at most 64 bytes
  std::uint32_t pid = 0;  ///< as in the process's own pid namespace
  std::string label;      ///< free text such as a pod's name, at most 64 bytes
};

/// A rank where a call takes one, so that it is never taken for an object, a tag or a number.
struct Rank {
  explicit constexpr Rank(int its_number) : number(its_number) {}

  int number;

  friend constexpr bool operator==(Rank a, Rank b) { return a.number == b.number; }
  friend constexpr bool operator!=(Rank a, Rank b) { return a.number != b.number; }
};

/// Tells streams between two ranks apart. 0 is the tag of calls that name none.
struct Tag {
  constexpr Tag() = default;
  explicit constexpr Tag(std::uint64_t its_number) : number(its_number) {}

  std::uint64_t number = 0;

  friend constexpr bool operator==(Tag a, Tag b) { return a.number == b.number; }
  friend constexpr bool operator!=(Tag a, Tag b) { return a.number != b.number; }
};

/// Consecutive ranks `first..last`, both included.
struct RankRange {
  int first = 0;
  int last = 0;

  friend bool operator==(RankRange a, RankRange b) {
    return a.first == b.first && a.last == b.last;
  }
};

MUSTER_END_NAMESPACE
