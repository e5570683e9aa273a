#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The demo is one program in two roles. `conductor.cpp` starts musterd and six copies of the
// program, stops one, kills one, starts it again, and checks and prints what they report;
// `worker.cpp` is what each copy does. They go from scene to scene together: a worker says that it
// has come to one and waits for the key `scene_key` of it.

namespace demo {

inline constexpr int process_count = 6;
inline constexpr int trainer = 0;
inline constexpr int victim = 2;   ///< will be killed, and started again
inline constexpr int hanging = 4;  ///< will be stopped for a while

/// A group by the processes that are its ranks 0, 1, ...
struct GroupPlan {
  const char* name;
  std::vector<int> processes;
};

/// Who is in which group; they overlap, and each process has one connection for all of its own.
inline const std::vector<GroupPlan> plan = {
    {"weights", {0, 1, 2, 3, 4, 5}},
    {"slice-a", {1, 2, 3}},
    {"slice-b", {3, 4, 5}},
    {"control", {0, 3}},
};

enum class Scene : int { objects = 1, weights, hang, loss, comeback, end };

inline std::string scene_key(Scene scene) {
  return "demo/scene/" + std::to_string(static_cast<int>(scene));
}

/// Worker lines that begin with this are facts for the conductor, "@name value"; others are for
/// the reader, and there should be none.
inline constexpr char fact_mark = '@';

// How much is done in the scenes.
inline constexpr int objects_per_sender = 100;
inline constexpr int barrier_count = 500;
inline constexpr int versions_by_manifest = 20;
inline constexpr int versions_by_parameter = 4;

/// Microseconds on the clock that all processes of this machine share.
std::int64_t now_us();

/// One process of the job; returns its exit status.
///
/// is_back  it was killed, and takes its place again
int run_worker(const std::string& server, int process, bool is_back);

struct Programs {
  std::string self;
  std::string musterd;
  std::string musterctl;
};

/// Starts everything, watches it and prints it; returns the exit status of the demo.
int run_conductor(const Programs& programs);

}  // namespace demo
