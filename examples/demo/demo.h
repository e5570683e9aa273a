#pragma once

#include <cstdint>
#include <string>

// The demo is one program in two roles. `conductor.cpp` starts musterd and five copies of the
// program, kills one of them and checks what they report; `worker.cpp` is what each copy does.

namespace demo {

/// The ranks of the demo's processes, and which of them will be killed.
inline constexpr int process_count = 5;
inline constexpr int victim = 2;

/// Worker lines that begin with this are facts for the conductor, "@name value"; all others are
/// for the reader.
inline constexpr char fact_mark = '@';

/// Microseconds on the clock that all processes of this machine share.
std::int64_t now_us();

/// One process of the job; returns its exit status.
int run_worker(const std::string& server, int process);

/// Starts everything, watches it and prints it; returns the exit status of the demo.
int run_conductor(const std::string& musterd, const std::string& self);

}  // namespace demo
