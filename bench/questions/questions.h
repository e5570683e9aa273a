#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

#include "run.h"

namespace muster::bench {

// One function per question, each in a file of its own name. `all_questions` lists them in the
// order in which they are asked.

void measure_operations(Run& run);
void measure_large_values(Run& run);
void measure_round_trips(Run& run);
void measure_callers(Run& run);
void measure_multi_get(Run& run);
void measure_wake_ups(Run& run);
void measure_connect_storm(Run& run);
void measure_groups(Run& run);
void measure_stateless_groups(Run& run);
void measure_memory(Run& run);
void measure_expiry(Run& run);
void measure_fairness(Run& run);
void measure_encryption(Run& run);
void measure_strangers(Run& run);
void measure_reconnect(Run& run);
void measure_tcpstore(Run& run);

// What more than one question asks of a subject.

/// All but the last connection wait for a key; that one sets it.
Json wake_all(const Subject& subject, Swarm& swarm, const std::string& key);
/// So many connect at once, and each has an answer.
Json storm(const Subject& subject, int connections);
/// vLLM's barrier on TCPStore, once. Each has a number of its own.
Json stateless_barrier(const Subject& subject, int ranks, int number);

/// Where the client runs; the server's core is always the same.
enum class Cores { one, two };
std::string name_of(Cores cores);
void place_client(Cores cores);

inline constexpr std::size_t kibibyte = 1024;
inline constexpr std::size_t mebibyte = 1024 * kibibyte;

/// Of the values where it is not asked what their size costs.
inline constexpr std::size_t small_value_bytes = 64;

inline constexpr std::initializer_list<Kind> all_kinds = {Kind::echo, Kind::muster, Kind::redis,
                                                          Kind::memcached, Kind::tcpstore};

}  // namespace muster::bench
