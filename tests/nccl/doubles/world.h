#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/doubles/loaded.h"
#include "support/await.h"

namespace muster::test {

using namespace std::chrono_literals;

/// How many there are of what the double of NCCL counts, without what it has leaked on purpose.
inline long held(const char* kind) {
  const std::string leaked = std::string("leaked_") + kind;
  return nccl().count(kind) - std::max(0L, nccl().count(leaked.c_str()));
}

/// Begins and ends with doubles that hold nothing and are told nothing; of a test case.
class CleanDoubles {
 public:
  CleanDoubles() {
    nccl().clear_faults();
    nccl().set_leaks(0);
  }
  ~CleanDoubles() {
    nccl().clear_faults();
    for (const char* const kind : {"communicators", "ids", "threads", "descriptors"}) {
      CAPTURE(kind);
      CHECK(holds_soon([&] { return held(kind) == 0; }));
    }
    CHECK(nccl().count("red_ops") == 0);
    CHECK(cuda().alive("streams") == 0);
    CHECK(cuda().alive("allocations") == 0);
    CHECK(holds_soon([] { return cuda().alive("threads") == 0; }));
  }
};

/// The ranks of a communicator that are devices of this process, each with a stream.
class World {
 public:
  using Id = NcclDouble::UniqueId;

  explicit World(int rank_count, const Id& id = new_id()) : rank_count_(rank_count), id_(id) {}
  ~World() {
    for (void* const communicator : communicators_) {
      if (communicator != nullptr) nccl().abort(communicator);
    }
    for (void* const stream : streams_) {
      cuda().synchronize_stream(stream);
      cuda().destroy_stream(stream);
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Adds a rank; gives the result of its initialization.
  int add(int rank, int device, int rank_count) {
    const CurrentDevice current(device);
    const auto config = nonblocking_config();
    void* communicator = nullptr;
    const int result = nccl().init(&communicator, rank_count, id_, rank, &config);
    communicators_.push_back(communicator);
    REQUIRE(cuda().create_stream(&streams_.emplace_back(), 1) == 0);
    return result;
  }
  int add(int rank) { return add(rank, rank, rank_count_); }

  /// All ranks, until they are ready.
  World& start() {
    for (int rank = 0; rank < rank_count_; ++rank) REQUIRE(add(rank) == 7);
    for (int index = 0; index < rank_count_; ++index) REQUIRE(settled(index) == 0);
    return *this;
  }

  /// Lets all do a first collective, for which they connect.
  World& connect() {
    std::vector<int> values(communicators_.size());
    for (int rank = 0; rank < rank_count_; ++rank) {
      int& value = values[static_cast<std::size_t>(rank)];
      REQUIRE(
          begins(nccl().all_reduce(&value, &value, 1, int32_type, 0, (*this)[rank], stream(rank))));
    }
    synchronize();
    return *this;
  }

  /// The asynchronous error of the one that was added at this place, once it is another than 7.
  int settled(int index) const {
    await([&] { return async_error((*this)[index]) != 7; });
    return async_error((*this)[index]);
  }
  int size() const { return static_cast<int>(communicators_.size()); }
  void* operator[](int index) const { return communicators_[static_cast<std::size_t>(index)]; }
  void*& slot(int index) { return communicators_[static_cast<std::size_t>(index)]; }
  void* stream(int index) const { return streams_[static_cast<std::size_t>(index)]; }

  int abort(int index) { return nccl().abort(std::exchange(slot(index), nullptr)); }
  int destroy(int index) { return nccl().destroy(std::exchange(slot(index), nullptr)); }
  /// Waits until all that has been called has been launched, and done.
  void synchronize() const {
    for (void* const communicator : communicators_) {
      if (communicator != nullptr) await([&] { return async_error(communicator) != 7; });
    }
    for (void* const stream : streams_) REQUIRE(cuda().synchronize_stream(stream) == 0);
  }
  /// So long that what can come has come: they are busy still.
  void check_that_nothing_comes() const {
    let_pass(100ms);
    for (void* const communicator : communicators_) CHECK(async_error(communicator) == 7);
  }

 private:
  int rank_count_;
  Id id_;
  std::vector<void*> communicators_;
  std::vector<void*> streams_;
};

}  // namespace muster::test
