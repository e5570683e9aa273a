#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/session/counts.h"

namespace muster::core {

/// What only the rim knows. It counts here, where the engine finds the numbers for operators.
struct RimCounts {
  // Connections since the start, and why the server or the peer ended them.
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;           ///< the server was full, or no hello came that it takes
  std::uint64_t tcpstore_refused = 0;  ///< of these, clients of TCPStore
  std::uint64_t ended = 0;             ///< by the peer, in any way that the kernel tells
  std::uint64_t broken = 0;            ///< by the network
  std::uint64_t breaches = 0;          ///< by the server: the peer broke the protocol
  std::uint64_t too_slow = 0;          ///< by the server: the peer did not take its replies

  // At the moment.
  std::uint64_t newcomers = 0;     ///< have not said hello
  std::uint64_t leaving = 0;       ///< take their last bytes
  std::uint64_t held = 0;          ///< their requests wait until they have taken their replies
  std::uint64_t postponed = 0;     ///< their requests wait until there is room for a reply
  std::uint64_t waiting = 0;       ///< their requests wait for their turn
  std::uint64_t slow = 0;          ///< take nothing of what waits for them
  std::uint64_t unsent_bytes = 0;  ///< that peers have not taken yet

  // The turns of the thread that serves, since the start.
  std::uint64_t turn_us_max = 0;
  std::uint64_t long_turns = 0;  ///< in which others waited for long
};

/// Every number that a server tells operators of itself, at one moment: the engine's and the rim's.
struct Snapshot {
  Counts core;
  std::uint64_t name_spaces = 0;
  std::uint64_t sessions_begun = 0;
  std::uint64_t sessions_lost = 0;
  std::uint64_t history_bytes = 0;  ///< of what has happened to groups
  RimCounts rim;
};

/// A number by the name under which `status` tells it.
struct Figure {
  std::string_view name;
  std::uint64_t (*of)(const Snapshot& snapshot);
};

/// In the order in which they are told; docs/operations.md says what those of the rim mean.
inline constexpr auto figures = std::to_array<Figure>({
    {"sessions_count", [](const Snapshot& all) { return all.core.sessions; }},
    {"observers_count", [](const Snapshot& all) { return all.core.observers; }},
    {"connections_count", [](const Snapshot& all) { return all.core.connections; }},
    {"keys_count", [](const Snapshot& all) { return all.core.keys; }},
    {"queues_count", [](const Snapshot& all) { return all.core.queues; }},
    {"objects_count", [](const Snapshot& all) { return all.core.objects; }},
    {"groups_count", [](const Snapshot& all) { return all.core.groups; }},
    {"epochs_count", [](const Snapshot& all) { return all.core.epochs; }},
    {"rounds_count", [](const Snapshot& all) { return all.core.rounds; }},
    {"streams_count", [](const Snapshot& all) { return all.core.streams; }},
    {"waits_count", [](const Snapshot& all) { return all.core.waits; }},
    {"cached_results_count", [](const Snapshot& all) { return all.core.cached_results; }},
    {"timers_count", [](const Snapshot& all) { return all.core.timers; }},
    {"memory_used_bytes", [](const Snapshot& all) { return all.core.memory_bytes; }},
    {"namespaces_count", [](const Snapshot& all) { return all.name_spaces; }},
    {"sessions_begun_count", [](const Snapshot& all) { return all.sessions_begun; }},
    {"sessions_lost_count", [](const Snapshot& all) { return all.sessions_lost; }},
    {"history_bytes", [](const Snapshot& all) { return all.history_bytes; }},
    {"connections_accepted_count", [](const Snapshot& all) { return all.rim.accepted; }},
    {"connections_refused_count", [](const Snapshot& all) { return all.rim.refused; }},
    {"tcpstore_clients_refused_count",
     [](const Snapshot& all) { return all.rim.tcpstore_refused; }},
    {"connections_ended_count", [](const Snapshot& all) { return all.rim.ended; }},
    {"connections_broken_count", [](const Snapshot& all) { return all.rim.broken; }},
    {"connections_in_breach_count", [](const Snapshot& all) { return all.rim.breaches; }},
    {"connections_too_slow_count", [](const Snapshot& all) { return all.rim.too_slow; }},
    {"newcomers_count", [](const Snapshot& all) { return all.rim.newcomers; }},
    {"leaving_connections_count", [](const Snapshot& all) { return all.rim.leaving; }},
    {"held_connections_count", [](const Snapshot& all) { return all.rim.held; }},
    {"postponed_connections_count", [](const Snapshot& all) { return all.rim.postponed; }},
    {"waiting_connections_count", [](const Snapshot& all) { return all.rim.waiting; }},
    {"slow_connections_count", [](const Snapshot& all) { return all.rim.slow; }},
    {"unsent_bytes", [](const Snapshot& all) { return all.rim.unsent_bytes; }},
    {"turn_us_max", [](const Snapshot& all) { return all.rim.turn_us_max; }},
    {"long_turns_count", [](const Snapshot& all) { return all.rim.long_turns; }},
});
static_assert(figures.size() * sizeof(std::uint64_t) == sizeof(Snapshot),
              "each number has a row, and each row a number");

}  // namespace muster::core
