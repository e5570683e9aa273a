#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/runtime.h"
#include "muster/server.h"
#include "muster/shared.h"
#include "runtime/shared/segment.h"

// One process of a job that shares: `runtime_shared_rank ROLE FOLDER`, told its place by the
// environment.
//
//     scopes   gathers tensors and states, through memory and through the folder, and writes and
//              reads workspaces there, on and on; prints a line for each; prints the code of what
//              ends it
//     once     gathers once through memory, and prints how it has ended
//     full     is a job of two ranks by itself, with a shared memory of 16 MiB, for which it has to
//              be root; prints each outcome

namespace {

using muster::Result;

int ended(const muster::Error& error) {
  std::cout << "ended " << name_of(error.code);
  for (const muster::RankReport& rank : error.ranks) std::cout << " rank " << rank.rank;
  std::cout << std::endl;
  return 0;
}

Result<void> share(muster::Runtime& runtime, const std::string& folder, std::uint64_t round) {
  const std::vector<std::uint64_t> numbers(20'000, round);
  const auto check = [&](const muster::TensorView& tensor) {
    const auto* const values = static_cast<const std::uint64_t*>(tensor.data);
    if (values[0] == round && values[numbers.size() - 1] == round) return;
    std::cout << "wrong numbers" << std::endl;
  };
  muster::GatherOptions options;
  options.folder = round % 3 == 2 ? folder : "";
  auto done = with_gathered_tensors(
      runtime.world(), muster::tensor_of(numbers),
      [&](muster::Span<const muster::TensorView> tensors) {
        for (const muster::TensorView& tensor : tensors) check(tensor);
      },
      options);
  if (!done) return done;
  muster::SharedStateView state;
  state.config = "{}";
  state.tensors = {{"numbers", muster::tensor_of(numbers)}};
  done = with_gathered_states(
      runtime.world(), state,
      [&](muster::Span<const std::optional<muster::SharedStateView>> states) {
        for (const auto& one : states) check(one->tensors[0].tensor);
      },
      options);
  if (!done) return done;
  muster::SharedWorkspace workspace(folder, runtime.rank());
  if (auto written = workspace.write(round, state); !written) return written;
  if (auto met = runtime.world().group()->barrier(); !met) return std::move(met).error();
  muster::SharedReadOptions wanted;
  wanted.generation_min = round;
  const int next = (runtime.rank() + 1) % runtime.world_size();
  auto read = workspace.read(next, wanted);
  if (!read) return std::move(read).error();
  return {};
}

int share_on_and_on(muster::Runtime& runtime, const std::string& folder) {
  for (std::uint64_t round = 1;; ++round) {
    if (auto done = share(runtime, folder, round); !done) return ended(done.error());
    std::cout << "round" << std::endl;
  }
}

int gather_once(muster::Runtime& runtime) {
  const std::vector<float> numbers(1000, static_cast<float>(runtime.rank()));
  const auto done = with_gathered_tensors(
      runtime.world(), muster::tensor_of(numbers),
      [](muster::Span<const muster::TensorView> tensors) { return tensors.size(); });
  if (!done) return ended(done.error());
  std::cout << "ok " << *done << std::endl;
  return 0;
}

/// What is too large leaves the last state, and nothing of itself.
void write_in_full_folder() {
  const std::string large(std::size_t{32} << 20, 'x');
  muster::SharedStateView state;
  muster::SharedWorkspace workspace("/dev/shm", 0);
  for (const std::string_view config : {std::string_view("kept"), std::string_view(large)}) {
    state.config = config;
    const auto written = workspace.write(1, state);
    std::cout << (written ? "ok" : name_of(written.error().code)) << ";";
  }
  const auto read = workspace.read(0);
  std::cout << (read ? read->config : std::string(name_of(read.error().code))) << ";";
  const auto segment = muster::runtime::SharedSegment::create("/dev/shm", "test", large.size());
  std::cout << (segment ? "ok" : name_of(segment.error().code)) << ";";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    std::cout << entry.path().filename().string();
  std::cout << std::endl;
}

/// Both ranks print how a gathering of so many bytes ends.
int gather_in_full_memory() {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=16m,mode=1777") != 0) {
    std::cout << "skipped: " << std::strerror(errno) << std::endl;
    return 0;
  }
  auto server = muster::Server::start();
  if (!server) return ended(server.error());
  std::vector<std::thread> ranks;
  std::string outcomes[2];
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const std::string number = std::to_string(rank);
      muster::Runtime runtime{muster::Environment({{"RANK", number},
                                                   {"WORLD_SIZE", "2"},
                                                   {"LOCAL_RANK", number},
                                                   {"LOCAL_WORLD_SIZE", "2"},
                                                   {"MUSTER_STORE", server->addresses().front()}})};
      if (!runtime.init()) return;
      for (const std::size_t mebibytes : {std::size_t{32}, std::size_t{8}}) {
        const std::vector<char> bytes(mebibytes << 20, 'x');
        muster::TensorView tensor = muster::tensor_of(muster::Span<const signed char>(
            reinterpret_cast<const signed char*>(bytes.data()), bytes.size()));
        const auto done = with_gathered_tensors(runtime.world(), tensor,
                                                [](muster::Span<const muster::TensorView>) {});
        outcomes[rank] += done ? "ok;" : done.error().message() + ";";
        if (!done) outcomes[rank] += std::string(name_of(done.error().code)) + ";";
      }
      static_cast<void>(runtime.shutdown());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& outcome : outcomes) std::cout << outcome << std::endl;
  write_in_full_folder();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string_view role = words[1];
  if (role == "full") return gather_in_full_memory();
  muster::Runtime runtime;
  if (auto begun = runtime.init(); !begun) return ended(begun.error());
  std::cout << "ready" << std::endl;
  return role == "once" ? gather_once(runtime) : share_on_and_on(runtime, words[2]);
}
