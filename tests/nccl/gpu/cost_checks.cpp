#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <memory>
#include <string>

#include "nccl/gpu/bare.h"
#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"

// Check 9: what communicators take, and what stays of them.

namespace muster::test::gpu {
namespace {

double entries_of(const char* folder) {
  double count = 0;
  DIR* const entries = ::opendir(folder);
  if (entries == nullptr) throw Failure(std::string("cannot read ") + folder);
  while (::readdir(entries) != nullptr) ++count;
  ::closedir(entries);
  return count;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double all_pages = 0;
  double resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) throw Failure("cannot read /proc/self/statm");
  return resident_pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// What this process has now, and what is taken on its device, by whomever.
struct Holdings {
  explicit Holdings(const Driver& driver)
      : threads(entries_of("/proc/self/task")),
        descriptors(entries_of("/proc/self/fd")),
        host_mib(resident_mib()) {
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    must(driver.memory(&free_bytes, &all_bytes), "cuMemGetInfo");
    device_mib = static_cast<double>(all_bytes - free_bytes) / (1 << 20);
  }
  double threads;
  double descriptors;
  double host_mib;
  double device_mib = 0;
};

/// What `after` has more than `before`, divided by a number.
struct Growth {
  Growth(const Holdings& before, const Holdings& after, double parts)
      : threads((after.threads - before.threads) / parts),
        descriptors((after.descriptors - before.descriptors) / parts),
        host_mib((after.host_mib - before.host_mib) / parts),
        device_mib((after.device_mib - before.device_mib) / parts) {}

  void tell(Rank& rank, const std::string& whose) const {
    rank.figure(whose + "device memory", device_mib, "MiB");
    rank.figure("host memory", host_mib, "MiB");
    rank.figure("threads", threads, "");
    rank.figure("descriptors", descriptors, "");
  }
  /// Says so where it is more than that.
  void judge(Rank& rank, const Growth& most) const {
    rank.expect(device_mib <= most.device_mib, "device memory is lost");
    rank.expect(host_mib <= most.host_mib, "host memory is lost");
    rank.expect(threads <= most.threads, "threads stay");
    rank.expect(descriptors <= most.descriptors, "descriptors stay");
  }
  struct Limits {
    double threads;
    double descriptors;
    double host_mib;
    double device_mib;
  };
  explicit Growth(const Limits& limits)
      : threads(limits.threads),
        descriptors(limits.descriptors),
        host_mib(limits.host_mib),
        device_mib(limits.device_mib) {}

  double threads;
  double descriptors;
  double host_mib;
  double device_mib;
};

}  // namespace

// The first few leave something that later ones use again.
namespace {

/// What is left when communicators have been made, used and closed one after the other.
struct Left {
  Growth growth;
  long cycles;
};

template <class Cycle>
Left left_by(Rank& rank, StatelessProcessGroup& group, const Cycle& cycle) {
  constexpr int first_ones = 3;
  for (int index = 0; index < first_ones; ++index) cycle();
  require(group.barrier());
  const Holdings before(rank.driver());
  require(group.barrier());
  long done = 0;
  Times times;
  for (const long wanted = rank.number("times"); rank.has_more(done < wanted); ++done) {
    const auto began = Clock::now();
    cycle();
    times.add(Clock::now() - began);
  }
  require(group.barrier());
  const Growth growth(before, Holdings(rank.driver()), 1);
  rank.figure("cycles", static_cast<double>(done), "");
  rank.figure("one, median", times.median_us() / 1000, "ms");
  growth.tell(rank, "then more ");
  return {growth, done};
}

/// NCCL 2.28 alone was seen to leave 105 MiB of the host's memory in 100 cycles, the first of which
/// leave more. Where Muster left half a MiB more in each, 100 would be over this.
double host_mib_max(long cycles) { return 32 + 1.25 * static_cast<double>(cycles); }

}  // namespace

void cycles(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  Numbers numbers(rank);
  const Left left = left_by(rank, group, [&] {
    auto communicator = rank.create(group);
    numbers.reduce(communicator);
    require(communicator.close());
  });
  left.growth.judge(rank, Growth(Growth::Limits{2, 4, host_mib_max(left.cycles), 32}));
  require(group.barrier());
}

/// What of that is NCCL's own.
void cycles_bare(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  const Numbers numbers(rank);
  left_by(rank, group, [&] {
    Bare bare(rank, group, rank.mode());
    rank.expect(bare.all_reduce(numbers.sum()) == 0, "NCCL alone does not reduce");
    numbers.stream().wait();
    rank.expect(bare.destroy() == 0, "NCCL alone does not end well");
  });
  require(group.barrier());
}

void many_alive(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto everybody = rank.join("everybody");
  Numbers numbers(rank);
  std::list<StatelessProcessGroup> groups;
  std::list<Communicator> communicators;
  const auto add = [&] {
    groups.push_back(rank.join(std::to_string(groups.size())));
    communicators.push_back(rank.create(groups.back()));
    numbers.reduce(communicators.back());
  };
  add();
  require(everybody.barrier());
  const Holdings before(rank.driver());
  require(everybody.barrier());
  const long wanted = rank.number("communicators");
  while (rank.has_more(static_cast<long>(communicators.size()) < wanted)) add();
  require(everybody.barrier());
  const auto added = static_cast<double>(communicators.size() - 1);
  rank.figure("alive at once", static_cast<double>(communicators.size()), "");
  if (added > 0) {
    Growth(before, Holdings(rank.driver()), added)
        .tell(rank, "each further one, of all ranks together on the device: ");
  }
  rank.expect(static_cast<long>(communicators.size()) == wanted,
              "time was up before all were made");
  require(everybody.barrier());
  for (Communicator& communicator : communicators) numbers.reduce(communicator);
  require(everybody.barrier());
}

namespace {

int refuse_init(nccl::Handle*, int, nccl::UniqueId, int, nccl::Config*) {
  constexpr int internal_error = 3;
  return internal_error;
}

}  // namespace

// The last rank does not come into NCCL, after the preflight; the others are waiting there then.
void failed_attempts(Rank& rank) {
  constexpr long attempts_max = 8;
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  {
    auto communicator = rank.create(group);  // what NCCL has once in a process is there
    require(communicator.close());
  }
  static nccl::Functions functions;
  functions = nccl_functions(rank);
  functions.comm_init_rank_config = refuse_init;
  nccl::Options options = rank.options();
  if (rank.index() == rank.size() - 1) options.nccl = &functions;
  require(group.barrier());
  const Holdings before(rank.driver());
  require(group.barrier());
  for (long attempt = 0; attempt < attempts_max; ++attempt) {
    const auto made = nccl::create(group, rank.device(), options);
    rank.expect(
        !made && made.error().code == ErrorCode::nccl,
        made ? "an attempt did not fail" : "an attempt failed by " + made.error().message());
  }
  rank.expect(nccl::failed_attempts() == attempts_max,
              std::to_string(nccl::failed_attempts()) + " attempts are counted");
  const auto refused = nccl::create(group, rank.device(), rank.options());
  rank.expect(!refused && refused.error().code == ErrorCode::resource_exhausted,
              "a ninth attempt was not refused");
  require(group.barrier());
  const Growth growth(before, Holdings(rank.driver()), attempts_max);
  if (rank.index() == 0) {
    growth.tell(rank, "each leaves: ");
    growth.judge(rank, Growth(Growth::Limits{2, 8, 4, 16}));
  }
  require(group.barrier());
  nccl::forgive_attempts();
  auto communicator = rank.create(group);
  Numbers(rank).reduce(communicator);
  require(group.barrier());
}

}  // namespace muster::test::gpu
