#include <algorithm>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"
#include "support/let_pass.h"

// Checks 4 and 5: rank 0 calls what rank 1 does not, so a kernel waits on its device; then it
// aborts.

namespace muster::test::gpu {
namespace {

/// As long as a kernel takes to begin, several times over.
constexpr auto until_kernels_run = 50ms;

bool is_aborting() {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    if (std::getline(std::ifstream(thread.path() / "comm"), name) && name == "muster-abort") {
      return true;
    }
  }
  return false;
}

/// An abort goes on when the streams are idle: NCCL frees what it had. The driver does that when
/// nothing runs on the device any more, and lets nobody in until then. So who issues what waits for
/// another rank, and then does not come to abort it, hangs.
void await_aborts() {
  const auto until = Clock::now() + patience;
  while (is_aborting()) {
    if (Clock::now() > until) throw Failure("an abort was not over after 60 s");
    let_pass(1ms);
  }
}

}  // namespace

void abort_frees_stream(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  const Stream stream(rank.driver());
  const Memory memory(rank.driver(), rank.bytes());
  Times times;
  Times ends;
  const long wanted = rank.number("times");
  while (rank.has_more(static_cast<long>(times.count()) < wanted)) {
    auto communicator = rank.create(group);
    auto began = Clock::now();
    if (rank.index() == 0) {
      require(large_sum(memory, stream, rank.bytes()).over(communicator));
      let_pass(until_kernels_run);
      rank.expect(!stream.is_idle(), "the stream is idle though rank 1 does not call");
      std::thread aborting([&] {
        began = Clock::now();
        communicator.abort();
      });
      aborting.join();
      rank.note("aborted");
      stream.wait();
    }
    times.add(Clock::now() - began);
    require(group.barrier());
    communicator.abort();
    await_aborts();
    ends.add(Clock::now() - began);
  }
  rank.figure("times", static_cast<double>(times.count()), "");
  if (rank.index() != 0) return;
  rank.figure("from the abort to an idle stream, median", times.median_us() / 1000, "ms");
  rank.figure("longest", times.longest_us() / 1000, "ms");
  rank.figure("to the end of the abort, median", ends.median_us() / 1000, "ms");
  rank.expect(times.longest_us() / 1000 <= static_cast<double>(rank.number("limit_ms")),
              "a stream was not idle after " + rank.text("limit_ms") + " ms");
}

namespace {

/// Communicators of one device, each in a group of its own, and a stream for each.
struct Several {
  Several(Rank& rank, int count, Duration abort_timeout) {
    nccl::Options options = rank.options();
    options.abort_timeout = abort_timeout;
    std::vector<nccl::Request> requests;
    for (int index = 0; index < count; ++index) {
      groups.push_back(rank.join(std::to_string(index) + " of " + std::to_string(count)));
      requests.push_back({&groups.back(), rank.device(), options});
      streams.emplace_back(rank.driver());
    }
    for (auto& made : all.create_all(requests)) communicators.push_back(require(std::move(made)));
  }

  bool are_busy() const {
    return std::none_of(streams.begin(), streams.end(),
                        [](const Stream& stream) { return stream.is_idle(); });
  }
  void wait() const {
    for (const Stream& stream : streams) stream.wait();
  }

  std::list<StatelessProcessGroup> groups;
  std::list<Stream> streams;
  nccl::Communicators all;
  std::vector<std::shared_ptr<Communicator>> communicators;
};

}  // namespace

// On the first stream a second operation is queued behind the one that waits.
void abort_together(Rank& rank) {
  constexpr auto abort_timeout = 5s;
  const OnDevice current(rank.driver(), rank.device());
  auto everybody = rank.join("everybody");
  const Memory memory(rank.driver(), rank.bytes());
  Times times;
  Times ends;
  int largest = 0;
  const long most = rank.number("communicators");
  for (int count = 2; rank.has_more(count <= most); ++count) {
    Several several(rank, count, abort_timeout);
    if (rank.index() == 0) {
      auto stream = several.streams.begin();
      for (const auto& communicator : several.communicators) {
        const Sum sum = large_sum(memory, *stream++, rank.bytes());
        require(sum.over(*communicator));
        if (communicator == several.communicators.front()) require(sum.over(*communicator));
      }
      let_pass(until_kernels_run);
      rank.expect(several.are_busy(), "a stream is idle though rank 1 does not call");
      const auto began = Clock::now();
      several.all.abort_all();
      rank.note("aborted");
      several.wait();
      times.add(Clock::now() - began);
      await_aborts();
      ends.add(Clock::now() - began);
    }
    largest = count;
    require(everybody.barrier());
    several.all.abort_all();
  }
  let_pass(abort_timeout + 1s);  // what is still inside NCCL then is given up
  rank.expect(nccl::given_up_handles() == 0,
              std::to_string(nccl::given_up_handles()) + " handles were given up");
  rank.figure("at most together", largest, "");
  if (rank.index() != 0) return;
  rank.figure("until all streams were idle, longest", times.longest_us() / 1000, "ms");
  rank.figure("until the aborts were over, longest", ends.longest_us() / 1000, "ms");
}

}  // namespace muster::test::gpu
