#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace muster::sim {

inline constexpr std::size_t counts_max = 40;

/// What became of one seed.
struct Outcome {
  std::vector<std::string> problems;
  std::uint64_t hash = 0;
  Duration passed{};
  std::array<std::uint64_t, counts_max> counts{};  ///< of what its subject names
};

/// What a simulation is about.
struct Subject {
  std::string_view name;
  std::vector<const char*> counts;  ///< their names
  /// Each count is above zero in so many seeds, else they do not reach what they are to; 0: it may
  /// be zero.
  std::uint64_t covering = 0;
  std::uint64_t seeds_for_bug = 0;  ///< within which it finds a planted one
  Outcome (*run)(std::uint64_t seed, bool is_printed) = nullptr;
};

/// The server and its clients, which is the first, and the launchers of a job.
const std::vector<Subject>& subjects();
/// None: there is no such subject.
const Subject* subject_of(std::string_view name);

}  // namespace muster::sim
