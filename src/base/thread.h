#pragma once

#include <functional>
#include <string>
#include <thread>

namespace muster::base {

/// Starts a thread that blocks all signals, from its first instruction on, and carries `name`
/// (15 bytes of it). What `run` throws is dropped: it must not end the host.
///
/// Throws std::system_error when the system has no thread left.
std::thread start_thread(const std::string& name, std::function<void()> run);

}  // namespace muster::base
