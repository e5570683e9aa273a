#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/session/connection_limits.h"
#include "muster/log.h"
#include "muster/types.h"
#include "wire/hello.h"

namespace muster::core {

struct NameSpaceLimits {
  std::uint32_t count_max = 4096;    ///< beside the default one
  std::uint32_t per_unit_max = 256;  ///< made by one unit
  /// A namespace without sessions is removed after this time, with its keys; zero: never.
  Duration idle_lifetime{};
  /// Keys at which waits for several keys stand, per namespace; one session may take as many as it
  /// leaves free.
  std::uint32_t waits_for_several_max = 262144;
};

/// Options of the rim. The engine has their values only for operators, who see and change them.
struct RimOptions {
  std::optional<LogLevel> log_level = LogLevel::debug;  ///< logged at least; none: nothing is
  Duration busy_poll{0};                                ///< before it sleeps
  int listen_backlog = 4096;                            ///< connections that the system queues
  // Of the namespaces of guests.
  Duration tcpstore_idle_lifetime{};
  std::uint64_t tcpstore_memory_bytes_max = 1ull << 28;
};

/// The process that embeds the server.
struct Host {
  ProcessInfo process;  ///< zero: none
  std::int32_t rank = -1;
  std::string tenant;  ///< where there are credentials; empty: unknown
};

/// Every limit of the engine and of its rim; the defaults are those of docs/semantics.md.
struct Options {
  wire::ServerLimits limits;  ///< those that clients are told
  ConnectionLimits connections;
  std::uint64_t memory_bytes_max = 1ull << 30;  ///< values, payloads, caches, unsent replies
  std::uint64_t namespace_memory_bytes_max = 1ull << 30;
  /// Of long memory that was freed just now, for who needs as much again; it is not charged.
  std::uint64_t kept_memory_bytes_max = 0;
  std::uint32_t sessions_max = 16384;
  NameSpaceLimits name_spaces;
  std::uint32_t guest_keys_max = 65536;  ///< as keys_per_operation_max, of guests
  std::uint32_t groups_per_namespace_max = 4096;
  std::uint32_t open_rounds_max = 1024;      ///< per group
  std::uint32_t list_slots_per_page = 1024;  ///< work of one page, matching or not
  /// So many steps of what can be put off an event does itself, and as many each later one.
  std::uint32_t work_per_event_max = 1024;

  /// If nothing was handled for longer than this, the rim says so by `Late`. It calls `Advance` at
  /// least four times as often.
  Duration gap_max{std::chrono::seconds(1)};
  /// Then no timer fires for this long, while the rim drains its sockets.
  Duration drain_after_gap{std::chrono::milliseconds(100)};
  /// How often an undecided round is logged with its missing ranks.
  Duration slow_round_log{std::chrono::seconds(10)};

  RimOptions rim;

  std::uint64_t incarnation = 1;  ///< random, one per start
  /// Of what has happened to groups; beside `memory_bytes_max`.
  std::uint64_t history_bytes_max = 4u << 20;
  /// Random, one per start, told to nobody: with it clients cannot choose keys that collide.
  std::array<std::uint64_t, 2> hash_key{};
  Host host;
};

}  // namespace muster::core
