#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"
#include "run.h"
#include "swarm.h"

namespace muster::bench {

/// Connections to each of the subjects, each of which has set a key of its own, `nth_key` of its
/// number: there is something to get, and all are warm.
std::vector<std::unique_ptr<Swarm>> swarms_with_keys(
    const std::vector<std::unique_ptr<Subject>>& subjects, int connections, std::string_view value);

/// Appends one request of this peer to `out`.
using Issue = std::function<void(Dialect& dialect, int peer, std::string& out)>;

struct LoadOptions {
  int depth = 1;                            ///< requests of each connection without a reply
  std::chrono::milliseconds duration{100};  ///< no request is begun later
};

/// Keeps all connections of the swarm busy, and returns what an operation has cost:
/// server_us, client_us (processor time of each), wall_us, p50_us and p99_us (from the request's
/// being written to its reply's being read), switches (how often the server left its core), and
/// how many operations there were.
Json load(const Subject& subject, Swarm& swarm, const Issue& issue, const LoadOptions& options);

}  // namespace muster::bench
