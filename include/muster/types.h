#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "muster/config.h"

// Bytes are `std::string` where they are owned and `std::string_view` where they are lent, as in
// LevelDB, gRPC and Protocol Buffers: any byte may occur, zero bytes too.

MUSTER_BEGIN_NAMESPACE

/// Durations of the public interface. Every timeout is of this type or converts to it.
using Duration = std::chrono::microseconds;

/// Names one process: a random number made at its start. Never host and pid, since in containers
/// every process may be pid 1 of a host of the same name.
struct ProcessId {
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const ProcessId& a, const ProcessId& b) { return a.bytes == b.bytes; }
  friend bool operator!=(const ProcessId& a, const ProcessId& b) { return !(a == b); }
  friend bool operator<(const ProcessId& a, const ProcessId& b) { return a.bytes < b.bytes; }
};

/// The 32 hexadecimal digits of `id`.
MUSTER_API std::string to_string(const ProcessId& id);

/// What is told about the process behind a store; it appears in the errors that others get.
struct ProcessInfo {
  ProcessId id;           ///< all zero: not known
  std::string host;       ///< host name, at most 64 bytes
  std::uint32_t pid = 0;  ///< as the process itself sees it
  std::string label;      ///< free text such as a pod's name, at most 64 bytes
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
