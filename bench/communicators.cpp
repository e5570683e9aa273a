// What communicators cost: the time in which those of overlapping groups are made, and how fast
// they move data. Each rank is a process.
//
//     communicators creation [GROUPS [SIZE [TIMES]]]    8 groups of 4, made 10 times, unless told
//     communicators bandwidth [RANKS [BYTES]]           2 ranks, up to 64 MiB, unless told
//
// With NCCL, where MUSTER_BENCH_DEVICES says how many GPUs there are (several ranks share one where
// there are fewer), else with Gloo.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <list>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "muster/server.h"
#include "weight_sync/backend.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
using muster::DataType;
using muster::StatelessProcessGroup;

constexpr auto patience = 60s;

template <class T>
T require(muster::Result<T> result) {
  if (!result.has_value()) {
    std::cerr << result.error().message() << '\n';
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double milliseconds_since(Clock::time_point began) {
  return Milliseconds(Clock::now() - began).count();
}

/// One rank's part of a benchmark, and where its server is.
struct Part {
  std::string benchmark;
  std::string address;
  int index = 0;  ///< of the process
  int processes = 0;
  int first = 0;  ///< the benchmark's numbers
  int second = 0;
  int times = 0;
};

StatelessProcessGroup join(const muster::Store& store, const std::string& name, int rank,
                           int size) {
  return require(StatelessProcessGroup::create(store, name, rank, size));
}

/// Group g is of the processes g, g + 1, ...: each process is in as many groups as a group has
/// processes, if there are so many.
void make(const weight_sync::Backend& backend, const Part& part) {
  auto store = require(muster::Store::connect(part.address));
  auto everybody = join(store, "everybody", part.index, part.processes);
  std::list<StatelessProcessGroup> groups;
  for (int group = 0; group < part.first; ++group) {  // in one order, else they wait in a ring
    const int rank = (part.index - group + part.processes) % part.processes;
    if (rank < part.second) {
      groups.push_back(join(store, "group" + std::to_string(group), rank, part.second));
    }
  }
  std::vector<double> all_ms;
  std::vector<double> one_ms;
  std::vector<double> library_ms;
  for (int time = 0; time < part.times; ++time) {
    require(everybody.barrier(patience));
    const auto began = Clock::now();
    std::vector<std::thread> threads;
    std::list<std::unique_ptr<muster::Communicator>> made;
    for (StatelessProcessGroup& group : groups) {
      auto& place = made.emplace_back();
      threads.emplace_back([&] {
        place = std::make_unique<muster::Communicator>(require(backend.connect(group, patience)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    all_ms.push_back(milliseconds_since(began));
    for (const auto& each : made) {
      one_ms.push_back(Milliseconds(each->creation_times().total).count());
      library_ms.push_back(Milliseconds(each->creation_times().library).count());
    }
    // An abort would go on in the background, also while the process ends.
    for (const auto& each : made) require(each->close(patience));
    require(everybody.barrier(patience));
  }
  std::printf("%f %f %f\n", median(all_ms), median(one_ms), median(library_ms));
}

/// Microseconds of one all_reduce of so many bytes, of many in a row.
double all_reduce_us(muster::Communicator& communicator, weight_sync::Staging& staging,
                     std::size_t bytes) {
  const auto run = [&](int count) {
    for (int index = 0; index < count; ++index) {
      require(communicator.all_reduce(staging.at(0), staging.at(0), bytes / 4, DataType::float32,
                                      muster::ReduceOp::sum, staging.stream(0)));
    }
    require(staging.wait(0));
  };
  const int count = bytes <= (1 << 20) ? 50 : 10;
  run(3);
  std::vector<double> us;
  for (int time = 0; time < 5; ++time) {
    const auto began = Clock::now();
    run(count);
    us.push_back(milliseconds_since(began) * 1000 / count);
  }
  return median(us);
}

void move(const weight_sync::Backend& backend, const Part& part) {
  auto store = require(muster::Store::connect(part.address));
  auto group = join(store, "everybody", part.index, part.processes);
  auto communicator = require(backend.connect(group, patience));
  const auto bytes_max = static_cast<std::size_t>(part.second);
  const auto staging = require(backend.staging(bytes_max));
  for (std::size_t bytes = 4; bytes <= bytes_max; bytes *= 16) {
    const double us = all_reduce_us(communicator, *staging, bytes);
    const double algorithm = static_cast<double>(bytes) / us / 1000;
    const double bus = algorithm * 2 * (part.processes - 1) / part.processes;
    std::printf("%zu %f %f %f\n", bytes, us, algorithm, bus);
  }
  require(group.barrier(patience));
}

int run(const weight_sync::Backend& backend, const Part& part) {
  part.benchmark == "creation" ? make(backend, part) : move(backend, part);
  return 0;
}

int run_part(const Part& part) {
  if (const char* const devices = std::getenv("MUSTER_BENCH_DEVICES")) {
    return run(weight_sync::on_cuda(part.index % std::max(1, std::atoi(devices))), part);
  }
#ifdef WEIGHT_SYNC_GLOO
  return run(weight_sync::on_cpu(), part);
#else
  std::cerr << "built without Gloo: MUSTER_BENCH_DEVICES says how many GPUs there are\n";
  return 1;
#endif
}

/// This program again, as one rank. It dies with its parent.
class Child {
 public:
  Child(const char* program, const Part& part) : index_(part.index) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::exit(1);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::setenv("NCCL_HOSTID", ("rank " + std::to_string(part.index)).c_str(), 0);
      const auto text = [](int number) { return std::to_string(number); };
      ::execl("/proc/self/exe", program, part.benchmark.c_str(), part.address.c_str(),
              text(part.index).c_str(), text(part.processes).c_str(), text(part.first).c_str(),
              text(part.second).c_str(), text(part.times).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Child() { std::fclose(output_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Of the lines that are numbers: NCCL prints lines of its own there.
  std::vector<double> numbers() {
    std::vector<double> numbers;
    char* line = nullptr;
    std::size_t bytes = 0;
    while (::getline(&line, &bytes, output_) > 0) {
      std::istringstream fields(line);
      for (double number = 0; fields >> number;) numbers.push_back(number);
    }
    std::free(line);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (status != 0) {
      std::cerr << "process " << index_ << " ended with "
                << (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                        : std::to_string(WEXITSTATUS(status)))
                << '\n';
      std::exit(1);
    }
    return numbers;
  }

 private:
  const int index_;
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

/// What each process says of the same benchmark.
std::vector<std::vector<double>> run_all(const char* program, Part part) {
  muster::ServerOptions options;
  options.standalone = true;
  const auto server = require(muster::Server::start(options));
  part.address = server.addresses().front();
  std::list<Child> children;
  for (part.index = 0; part.index < part.processes; ++part.index) {
    children.emplace_back(program, part);
  }
  std::vector<std::vector<double>> said;
  for (Child& child : children) said.push_back(child.numbers());
  return said;
}

void print_creation(const char* program, const Part& part) {
  std::vector<double> all;
  std::vector<double> one;
  std::vector<double> library;
  for (const auto& numbers : run_all(program, part)) {
    all.push_back(numbers.at(0));
    one.push_back(numbers.at(1));
    library.push_back(numbers.at(2));
  }
  std::printf("%d overlapping groups of %d, %d processes, medians of %d times\n", part.first,
              part.second, part.processes, part.times);
  std::printf("all of a process          %8.1f ms, the slowest process %.1f ms\n", median(all),
              *std::max_element(all.begin(), all.end()));
  std::printf("one communicator          %8.1f ms\n", median(one));
  std::printf("  inside NCCL or Gloo     %8.1f ms\n", median(library));
  std::printf("  Muster's                %8.1f ms\n", median(one) - median(library));
}

void print_bandwidth(const char* program, const Part& part) {
  const auto said = run_all(program, part);
  std::printf("all_reduce of float32, %d ranks\n%12s %12s %14s %12s\n", part.processes, "bytes",
              "us", "algorithm GB/s", "bus GB/s");
  for (std::size_t at = 0; at + 3 < said.front().size(); at += 4) {
    std::printf("%12.0f %12.1f %14.3f %12.3f\n", said.front()[at], said.front()[at + 1],
                said.front()[at + 2], said.front()[at + 3]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, int by_default) {
    return index < argc ? std::atoi(argv[index]) : by_default;
  };
  Part part;
  part.benchmark = argc > 1 ? argv[1] : "";
  if (argc == 8) {
    part.address = argv[2];
    part.index = number(3, 0);
    part.processes = number(4, 0);
    part.first = number(5, 0);
    part.second = number(6, 0);
    part.times = number(7, 0);
    return run_part(part);
  }
  if (part.benchmark == "creation") {
    part.first = part.processes = number(2, 8);
    part.second = number(3, 4);
    part.times = number(4, 10);
    print_creation(argv[0], part);
    return 0;
  }
  if (part.benchmark == "bandwidth") {
    part.processes = number(2, 2);
    part.second = number(3, 64 << 20);
    print_bandwidth(argv[0], part);
    return 0;
  }
  std::cerr << "communicators creation [GROUPS [SIZE [TIMES]]] | bandwidth [RANKS [BYTES]]\n";
  return 2;
}
