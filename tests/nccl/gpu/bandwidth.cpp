#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nccl/gpu/bare.h"
#include "nccl/gpu/parts.h"

// How fast one operation is, by size: NCCL's own calls on a communicator of a host's own making,
// and Muster's, in both modes, in turns. Each time is that of several operations one behind the
// other, from the first call until the stream is idle.

namespace muster::test::gpu {
namespace {

constexpr unsigned char pattern = 0x3f;
constexpr float pattern_value = 0.7470588F;  // of four such bytes
constexpr double round_us = 100'000;
constexpr long calls_max = 200;

/// An operation by name, as Muster calls it and as NCCL does.
class Operation {
 public:
  Operation(Rank& rank, const Memory& from, const Memory& to, const Stream& stream)
      : name_(rank.text("operation")), rank_(rank), from_(from), to_(to), stream_(stream) {
    if (name_ != "all_reduce" && name_ != "broadcast" && name_ != "send_recv") {
      throw Failure("there is no operation " + name_);
    }
  }

  Result<void> call(Communicator& communicator, std::size_t count) const {
    constexpr auto type = DataType::float32;
    void* const stream = stream_.handle();
    if (name_ == "all_reduce") {
      return communicator.all_reduce(from_.at(), to_.at(), count, type, ReduceOp::sum, stream,
                                     patience);
    }
    if (name_ == "broadcast") {
      return communicator.broadcast(from_.at(), to_.at(), count, type, 0, stream, patience);
    }
    if (rank_.index() == 0) return communicator.send(from_.at(), count, type, 1, stream, patience);
    return communicator.recv(to_.at(), count, type, 0, stream, patience);
  }

  int call(const Bare& bare, std::size_t count) const {
    constexpr int type = 7;  // ncclFloat32
    const nccl::Functions& nccl = bare.functions();
    void* const stream = stream_.handle();
    int result = 0;
    if (name_ == "all_reduce") {
      result = nccl.all_reduce(from_.at(), to_.at(), count, type, 0, bare.handle(), stream);
    } else if (name_ == "broadcast") {
      result = nccl.broadcast(from_.at(), to_.at(), count, type, 0, bare.handle(), stream);
    } else if (rank_.index() == 0) {
      result = nccl.send(from_.at(), count, type, 1, bare.handle(), stream);
    } else {
      result = nccl.recv(to_.at(), count, type, 0, bare.handle(), stream);
    }
    return bare.settled(result);
  }

  /// What this rank has of it, everywhere in `to`.
  float outcome() const {
    if (name_ == "all_reduce") return pattern_value * static_cast<float>(rank_.size());
    return name_ == "broadcast" || rank_.index() == 1 ? pattern_value : 0;
  }

 private:
  const std::string name_;
  Rank& rank_;
  const Memory& from_;
  const Memory& to_;
  const Stream& stream_;
};

struct Subject {
  std::string name;
  std::function<void(std::size_t count)> call;
  Times times;
};

/// As much as fits twice for each rank of the device, with a fifth of it left to NCCL.
std::size_t bytes_that_fit(Rank& rank) {
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  must(rank.driver().memory(&free_bytes, &all_bytes), "cuMemGetInfo");
  const long shared_by = rank.number("ranks_of_device");
  const auto fit = static_cast<long>(static_cast<double>(free_bytes) * 0.8) / (2 * shared_by);
  return static_cast<std::size_t>(rank.agreed(std::min(fit, rank.number("bytes"))));
}

class Bandwidth {
 public:
  Bandwidth(Rank& rank, std::size_t bytes_max)
      : rank_(rank),
        everybody_(rank.join("everybody")),
        from_(rank.driver(), bytes_max),
        to_(rank.driver(), bytes_max),
        stream_(rank.driver()),
        operation_(rank, from_, to_, stream_) {
    from_.set_bytes(pattern);
  }

  void add(const std::string& name, const Bare& bare) {
    subjects_.push_back(
        {name,
         [this, &bare](std::size_t count) { must(operation_.call(bare, count), "NCCL's call"); },
         {}});
  }
  void add(const std::string& name, Communicator& communicator) {
    subjects_.push_back({name,
                         [this, &communicator](std::size_t count) {
                           require(operation_.call(communicator, count));
                         },
                         {}});
  }

  void measure(std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    double slowest_us = 0;
    for (Subject& subject : subjects_) {
      subject.times = {};
      slowest_us = std::max(slowest_us, look(subject, count));
    }
    const auto fitting = static_cast<long>(round_us / std::max(slowest_us, 1.0));
    const long calls = rank_.agreed(std::clamp(fitting, 1L, calls_max));
    long round = 0;
    for (const long rounds = rank_.number("rounds"); rank_.has_more(round < rounds); ++round) {
      for (std::size_t turn = 0; turn < subjects_.size(); ++turn) {
        const auto first = static_cast<std::size_t>(round);
        time(subjects_[(first + turn) % subjects_.size()], count, calls);
      }
    }
    for (const Subject& subject : subjects_) {
      if (round == 0) continue;  // time is up
      rank_.figure(std::to_string(bytes) + " " + subject.name, subject.times.median_us(), "us");
    }
  }

 private:
  /// Whether it moves what it should, at the end of the buffer; gives the time of a call.
  double look(Subject& subject, std::size_t count) {
    to_.set_bytes(0);
    require(everybody_.barrier());
    const auto began = Clock::now();
    subject.call(count);
    stream_.wait();
    const double us = ms_since(began) * 1000;
    const float seen = to_.get<float>(count - 1);
    const float right = operation_.outcome();
    if (std::abs(seen - right) > 1e-5F * static_cast<float>(rank_.size())) {
      throw Failure(subject.name + " gave " + std::to_string(seen) + ", not " +
                    std::to_string(right));
    }
    return us;
  }

  void time(Subject& subject, std::size_t count, long calls) {
    require(everybody_.barrier());
    const auto began = Clock::now();
    for (long index = 0; index < calls; ++index) subject.call(count);
    stream_.wait();
    subject.times.add((Clock::now() - began) / calls);
  }

  Rank& rank_;
  StatelessProcessGroup everybody_;
  Memory from_;
  Memory to_;
  Stream stream_;
  Operation operation_;
  std::vector<Subject> subjects_;
};

}  // namespace

void bandwidth(Rank& rank) {
  constexpr std::size_t bytes_min = 1024;
  constexpr std::size_t step = 4;
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto bare_group = rank.join("bare");
  auto blocking_group = rank.join("blocking");
  const Bare bare(rank, bare_group, nccl::Mode::blocking);
  nccl::Options options = rank.options();
  options.mode = nccl::Mode::nonblocking;
  auto nonblocking = rank.create(group, options);
  options.mode = nccl::Mode::blocking;
  auto blocking = rank.create(blocking_group, options);
  const std::size_t bytes_max = bytes_that_fit(rank);
  Bandwidth measures(rank, bytes_max);
  measures.add("nccl", bare);
  measures.add("nonblocking", nonblocking);
  measures.add("blocking", blocking);
  for (std::size_t bytes = bytes_min; bytes <= bytes_max; bytes *= step) measures.measure(bytes);
  rank.figure("room", static_cast<double>(bytes_max), "bytes");
  require(group.barrier());
}

}  // namespace muster::test::gpu
