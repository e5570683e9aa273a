#pragma once

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "muster/process_group.h"
#include "muster/server.h"
#include "muster/store.h"

// The examples show several ranks in one program: a thread and a store per rank. In real life
// each rank is a process; nothing else changes.

namespace example {

/// Ends the example with an error when something is not as its text says.
inline void require(bool kept, const std::string& what) {
  if (kept) return;
  std::cerr << "not as promised: " << what << '\n';
  std::exit(1);
}

/// The value, or the end of the example.
template <class T>
T require(muster::Result<T> result) {
  if (!result.has_value()) require(false, result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

inline muster::Server start_server() { return require(muster::Server::start()); }

inline muster::Store connect(const muster::Server& server, const std::string& label = {}) {
  muster::StoreOptions options;
  options.label = label;
  return require(muster::Store::connect(server.addresses().front(), std::move(options)));
}

/// Runs `part(rank)` for all ranks at the same time and waits for all.
inline void run_ranks(int world_size, const std::function<void(int rank)>& part) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(part, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace example
