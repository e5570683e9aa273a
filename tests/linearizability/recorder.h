#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "linearizability/history.h"
#include "muster/store.h"

namespace muster::linear {

/// Which keys are used at the moment: a few, and after so many operations new ones, so that each
/// has a short history.
class Keys {
 public:
  static constexpr std::uint64_t key_count = 4;
  static constexpr std::uint64_t operations_per_key = 200;

  /// Those of one server's life: none has the name of an earlier one's.
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string next(std::uint64_t choice) {
    const std::uint64_t generation = used_++ / (key_count * operations_per_key);
    return prefix_ + std::to_string(generation) + "/" + std::to_string(choice % key_count);
  }

 private:
  std::string prefix_;
  std::atomic<std::uint64_t> used_{0};
};

/// One client that does operations one after the other and writes down what came of them.
class Recorder {
 public:
  Recorder(int client, Store& store, Keys& keys, std::uint64_t seed)
      : client_(client), store_(store), keys_(keys), random_(seed) {}

  /// One operation on one of the keys.
  ///
  /// returns  whether the server can be asked further
  bool step();

  std::map<std::string, History>& histories() { return histories_; }
  std::uint64_t unknown_count() const { return unknown_count_; }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::string new_value() { return std::to_string(below(1000)); }
  Operation plan();
  /// What was answered; an error means that nobody knows.
  std::optional<Error> ask(const std::string& key, Operation& operation);

  int client_;
  Store& store_;
  Keys& keys_;
  std::mt19937_64 random_;
  std::string last_seen_ = "0";
  std::map<std::string, History> histories_;
  std::uint64_t unknown_count_ = 0;
};

}  // namespace muster::linear
