#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ranks.h"

namespace muster::bench {

/// What of a question is asked, and how often. Empty lists: what the question asks by default.
struct Asked {
  std::vector<int> ranks;
  std::vector<std::uint64_t> bytes;
  std::vector<std::string> subjects;
  int rounds = 5;

  bool wants(std::string_view subject) const;
};

/// Of the world; empty where there is no Gloo.
#ifdef MUSTER_BENCH_GLOO
inline constexpr const char* cpu_communicators = "cpu:gloo";
#else
inline constexpr const char* cpu_communicators = "";
#endif

/// A measurement, on rank 0: one line of JSON on the standard output.
void record(std::string_view question, const Json& parameters, std::string_view subject,
            const Json& values);

// One function per question, each in a file of its own name.

/// synchronize_value of an int64: Muster, and a broadcast of it by Gloo.
void measure_synchronize_value(const BenchServer& server, const Asked& asked);
/// all_reduce of float32: shared memory, and Gloo.
void measure_all_reduce(const BenchServer& server, const Asked& asked);
/// with_gathered_tensors, until rank 0 has all; and memcpy of as many bytes into new memory.
void measure_gather(const BenchServer& server, const Asked& asked);

}  // namespace muster::bench
