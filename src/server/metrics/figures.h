#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/report.h"
#include "core/session/options.h"
#include "net/loop.h"

namespace muster::server {

/// Every number that a server shows of itself, at one moment: those of the engine, of the rim, and
/// the limits that they stand against. Plain data of some 10 KiB: it goes to other threads.
struct Figures {
  core::Report engine;
  net::TurnTimes turns;
  std::uint64_t log_lines_left_out = 0;  ///< for those who make many
  std::uint64_t log_lines_dropped = 0;   ///< nobody took them; whoever writes the log knows
  std::chrono::system_clock::time_point started{};
  std::chrono::system_clock::time_point taken{};

  /// When they expire; nothing: there is none.
  std::optional<std::chrono::seconds> server_certificate_expiry;
  std::optional<std::chrono::seconds> authority_certificate_expiry;
  std::optional<std::chrono::seconds> credential_expiry;

  std::uint64_t memory_bytes_max = 0;
  std::uint64_t connections_max = 0;
  std::uint64_t hello_connections_max = 0;
  std::uint64_t sessions_max = 0;
  std::uint64_t name_spaces_max = 0;
};

}  // namespace muster::server
