#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/session/options.h"
#include "scheduler.h"

namespace muster::sim {

/// A group that some of the processes form.
struct GroupPlan {
  std::string name;
  std::vector<std::uint32_t> slots;  ///< of its processes, by rank
  Duration data_expiration{};        ///< zero: none
};

/// What one seed is about; all of it follows from the seed.
struct Plan {
  explicit Plan(std::uint64_t seed);

  std::uint64_t seed = 0;
  std::uint32_t ranks = 0;
  Duration length{};        ///< of the work, before all end it in order
  double drift = 0;         ///< each clock runs at most so much too fast or too slow
  Duration delay_max{};     ///< of the network
  Duration thinking_max{};  ///< between two calls of one process
  bool has_store_work = true;
  bool has_queues = false;  ///< somebody pushes and pops
  bool has_group_work = true;
  bool has_small_limits = false;
  bool has_observer = false;
  std::uint32_t guests = 0;  ///< clients of TCPStore's
  Duration guests_idle_lifetime{};
  bool has_identities = false;  ///< clients prove who they are; strangers are there, too
  /// By namespace; with a second one some processes are in both, and use the same names there.
  std::vector<std::vector<GroupPlan>> groups;

  // What goes wrong: how many times, on average, in a minute. 0: never.
  std::uint32_t short_cuts = 0;   ///< of the network, below 0.8 of the session timeout
  std::uint32_t long_cuts = 0;    ///< longer ones
  std::uint32_t stops = 0;        ///< of processes
  std::uint32_t deaths = 0;       ///< of processes; another one takes the rank
  std::uint32_t reports = 0;      ///< that a living process is dead
  std::uint32_t reloads = 0;      ///< of the credentials, another version of them
  std::uint32_t revocations = 0;  ///< of workers' credentials, which are back after a while
  std::uint32_t impostors = 0;    ///< who want to resume the session of another
  std::uint32_t server_pauses = 0;
  std::uint32_t server_deaths = 0;

  core::Options options;

  bool has_expiration() const;
  /// Whether the processes of this slot are in the second namespace, too.
  bool is_in_both(std::uint32_t slot) const;
  std::string text() const;
  /// A number that every process of this seed knows.
  std::uint64_t agreed(std::uint64_t a, std::uint64_t b) const {
    return Random(seed * 0x2545f4914f6cdd1d + a * 0x9e3779b97f4a7c15 + b).next();
  }

 private:
  void plan_groups(Random& random);
};

}  // namespace muster::sim
