#include <dirent.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "nccl/communicator_machine.h"
#include "support/scale.h"

// What failed creations leave behind. A program of its own: it counts what the whole process has.

namespace muster::test {
namespace {

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  DIR* const entries = ::opendir(folder);
  while (::readdir(entries) != nullptr) ++count;
  ::closedir(entries);
  return count;
}

/// Two ranks whose creations fail, each time in a group of its own.
class Failing {
 public:
  Failing() {
    for (auto& store : stores_) store = std::make_unique<Store>(connect(server_));
  }

  struct Wish {
    ErrorCode code;
    const char* fault = "";
    nccl::Options options = doubled();
    int device = 1;  ///< of rank 1
  };
  void fail_both(const Wish& wish) {
    REQUIRE((*wish.fault == '\0' || nccl().fault(wish.fault) == 0));
    form();
    run_ranks(2, [&](int rank) { fail(rank, rank == 1 ? wish.device : 0, wish); });
    nccl().clear_faults();
    nccl::forgive_attempts();
  }
  /// Rank 1 comes when rank 0 has gone.
  void fail_one_by_one() {
    form();
    for (const int rank : {0, 1}) fail(rank, rank, {ErrorCode::timed_out, "", doubled(30ms)});
  }
  void fail_in_some_way(int way) {
    Wish unloadable{ErrorCode::library_missing};
    unloadable.options.nccl_library = "/nowhere/libnccl.so.2";
    Wish warm{ErrorCode::nccl, "collective:result=1"};
    warm.options.warm_up = true;
    switch (way % 6) {
      case 0: return fail_one_by_one();
      case 1: return fail_both({ErrorCode::nccl, "connect:result=3"});
      case 2: return fail_both({ErrorCode::duplicate_device, "", doubled(), 0});
      case 3: return fail_both({ErrorCode::timed_out, "ring:forever", doubled(150ms)});
      case 4: return fail_both(unloadable);
      default: return fail_both(warm);
    }
  }

 private:
  using Group = std::unique_ptr<StatelessProcessGroup>;

  static std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

  void form() {
    const std::string name = "g" + std::to_string(++formed_count_);
    for (Group& group : groups_) group.reset();
    run_ranks(2, [&](int rank) {
      auto group = join(*stores_[index_of(rank)], name, rank, 2);
      groups_[index_of(rank)] = std::make_unique<StatelessProcessGroup>(std::move(group));
    });
  }
  void fail(int rank, int device, const Wish& wish) {
    auto& group = *groups_[index_of(rank)];
    const Error error = must_fail(nccl::create(group, device, wish.options));
    // On a machine that has no time for the answers, one rank goes and the other one is told.
    const bool is_late =
        error.code == ErrorCode::outcome_unknown || error.code == ErrorCode::rank_left;
    if (!is_late) CHECK(error.code == wish.code);
  }

  Server server_ = start_server();
  std::array<std::unique_ptr<Store>, 2> stores_;
  std::array<Group, 2> groups_;
  int formed_count_ = 0;
};

TEST_CASE_FIXTURE(Machine, "creations that fail leave neither a thread nor a descriptor") {
  Failing ranks;
  for (int way = 0; way < 6; ++way) ranks.fail_in_some_way(way);  // what is made once, is made
  const std::size_t threads = entries_of("/proc/self/task");
  const std::size_t descriptors = entries_of("/proc/self/fd");
  for (int way = 0; way < scaled(200); ++way) ranks.fail_in_some_way(way);
  await([] { return nccl().count("communicators") == 0 && cuda().alive("threads") == 0; });
  // Not more; fewer when one that ended was still counted before.
  CHECK(holds_soon([&] { return entries_of("/proc/self/task") <= threads; }));
  CHECK(holds_soon([&] { return entries_of("/proc/self/fd") <= descriptors; }));
  CHECK(entries_of("/proc/self/task") <= threads);
  CHECK(entries_of("/proc/self/fd") <= descriptors);
  CHECK(cuda().alive("streams") == 0);
  CHECK(cuda().alive("allocations") == 0);
  CHECK(nccl::given_up_handles() == 0);
}

}  // namespace
}  // namespace muster::test
