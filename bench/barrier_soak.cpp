// Many barriers in a row against a musterd of its own: what one costs, and what they leave behind.
//
//     barrier_soak MUSTERD [BARRIERS [RANKS]]      1,000,000 barriers of 4 ranks unless told
//
// Prints the server's resident size and what it holds before and after, the time of a barrier as
// its callers see it, and the server's processor time for it.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "muster/process_group.h"
#include "muster/store.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

template <class T>
T require(muster::Result<T> result) {
  if (!result.has_value()) {
    std::cerr << result.error().message() << '\n';
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// A musterd that dies with this program.
class Server {
 public:
  explicit Server(const char* musterd) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::exit(1);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(musterd, musterd, "--listen", "127.0.0.1:0", "--log-level", "silent", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    char line[200] = {};
    if (::read(ends[0], line, sizeof line - 1) <= 0) std::exit(1);
    std::istringstream words(line);
    for (std::string word; words >> word;) address_ = word;
    ::close(ends[0]);
  }
  ~Server() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  const std::string& address() const { return address_; }

  long resident_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string word; status >> word;) {
      long kib = 0;
      if (word == "VmRSS:" && status >> kib) return kib;
    }
    return -1;
  }

  /// Of all its threads, from the kernel's own account.
  double processor_s() const {
    double sum_s = 0;
    const auto tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::ifstream stat(task.path() / "schedstat");
      double nanoseconds = 0;
      stat >> nanoseconds;
      sum_s += nanoseconds / 1e9;
    }
    return sum_s;
  }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

void print_held(const char* when, const Server& server, muster::Store& store) {
  std::cout << when << ": resident " << server.resident_kib() << " KiB";
  for (const auto& [name, value] : require(store.status())) {
    for (const char* kind : {"keys", "rounds", "waits", "cached_results", "memory_used_bytes"}) {
      if (name == kind || name == std::string(kind) + "_count") {
        std::cout << ", " << kind << ' ' << value;
      }
    }
  }
  std::cout << std::endl;
}

void run_ranks(const Server& server, int ranks, long barriers) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&server, rank, ranks, barriers] {
      auto store = require(muster::Store::connect(server.address()));
      auto group = require(muster::StatelessProcessGroup::create(store, "soak", rank, ranks));
      for (long i = 0; i < barriers; ++i) require(group.barrier(60s));
      require(group.leave());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: barrier_soak MUSTERD [BARRIERS [RANKS]]\n";
    return 2;
  }
  const long barriers = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 4;
  const Server server(argv[1]);
  auto observer = require(muster::Store::connect(server.address()));
  run_ranks(server, ranks, 1000);  // what the first ones allocate is not what the last ones leave

  print_held("before", server, observer);
  const double processor_before_s = server.processor_s();
  const auto began = Clock::now();
  run_ranks(server, ranks, barriers);
  const double took_s = std::chrono::duration<double>(Clock::now() - began).count();
  const double processor_s = server.processor_s() - processor_before_s;
  print_held("after", server, observer);
  const double per_barrier = 1e6 / static_cast<double>(barriers);
  std::printf("%ld barriers of %d ranks in %.1f s: %.1f us each, %.1f us of the server's CPU\n",
              barriers, ranks, took_s, took_s * per_barrier, processor_s * per_barrier);
  return 0;
}
