#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

// Signals by the numbers that Linux gives them on x86 and ARM.

namespace muster::launch {

inline constexpr int signal_hang_up = 1;
inline constexpr int signal_interrupt = 2;
inline constexpr int signal_quit = 3;
inline constexpr int signal_kill = 9;
inline constexpr int signal_terminate = 15;

/// Such as "SIGTERM", "SIGRTMIN+2"; "signal 99" of a number that has no name.
std::string name_of_signal(int signal);

/// Reads a list such as "SIGTERM,SIGUSR1"; each name with or without "SIG".
///
/// errors  invalid_argument (`detail`: the part that names no signal, or one that no process can
///         handle)
Result<std::vector<int>> signals_of(std::string_view list);

/// Whether a job ends when its launcher gets the signal; of the others its ranks are told alone.
bool ends_job(int signal);

}  // namespace muster::launch
