#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "muster/process_group.h"
#include "muster/store.h"
#include "support/await.h"
#include "support/server.h"

// Several ranks in one test: a thread and a store per rank, as processes would have them.

namespace muster::test {

using namespace std::chrono_literals;

inline Store connect(const std::string& address, StoreOptions options = {}) {
  if (options.timeout == StoreOptions{}.timeout) options.timeout = 20s;
  return must(Store::connect(address, std::move(options), 10s));
}
inline Store connect(const Server& server, StoreOptions options = {}) {
  return connect(server.addresses().front(), std::move(options));
}

inline GroupOptions patience(Duration timeout = 20s) {
  GroupOptions options;
  options.timeout = timeout;
  return options;
}

inline StatelessProcessGroup join(const Store& store, const std::string& name, int rank,
                                  int world_size, GroupOptions options = patience()) {
  return must(StatelessProcessGroup::create(store, name, rank, world_size, std::move(options)));
}

/// Runs `part(rank)` for all ranks at the same time, waits for all, and lets the first exception
/// (a failed doctest requirement) out.
inline void run_ranks(int world_size, const std::function<void(int rank)>& part) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        part(rank);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// How many of a kind the server holds, from its status: "keys", "rounds", "groups", ...
inline std::uint64_t held_count(Store& store, const std::string& kind) {
  for (const auto& [name, value] : must(store.status())) {
    if (name == kind + "_count") return std::stoull(value);
  }
  FAIL("the status has no count of ", kind);
  return 0;
}

/// As `Health`, for a server whose log is not at hand: of what ever came to it.
inline void check_healthy(Store& store) {
  CHECK(held_count(store, "connections_accepted") == held_count(store, "sessions_begun"));
  for (const char* const trouble : {"sessions_lost", "connections_refused", "connections_broken",
                                    "connections_in_breach", "connections_too_slow"}) {
    CAPTURE(trouble);
    CHECK(held_count(store, trouble) == 0);
  }
}

}  // namespace muster::test
