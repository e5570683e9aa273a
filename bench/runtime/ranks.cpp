#include "runtime/ranks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <new>
#include <stdexcept>
#include <thread>

#ifdef MUSTER_BENCH_GLOO
#include "muster/runtime_gloo.h"
#endif

namespace muster::bench {

constexpr int rounds_max = 4096;
constexpr int ranks_max = 128;

/// What ranks share. A rank writes its own places, between two meetings; rank 0 reads all behind
/// the second one.
struct Board {
  struct Place {
    double begin_us;
    double end_us;
    double processor_us;
    double ends_us[rounds_max];
  };

  pthread_barrier_t all;
  Place places[ranks_max];
};

namespace {

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double clock_us(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) throw std::runtime_error("a clock cannot be read");
  return seconds_of(time) * 1e6;
}

/// Goes when the parent unmaps it, and with the processes.
class SharedBoard {
 public:
  explicit SharedBoard(int count)
      : memory_(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) {
    if (count > ranks_max) throw std::runtime_error("too many ranks");
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory to share");
    auto* const board = new (memory_) Board;
    pthread_barrierattr_t attributes;
    ::pthread_barrierattr_init(&attributes);
    ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&board->all, &attributes, static_cast<unsigned>(count));
  }
  ~SharedBoard() { ::munmap(memory_, sizeof(Board)); }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  Board& board() const { return *static_cast<Board*>(memory_); }

 private:
  void* memory_;
};

/// The child's life.
[[noreturn]] void be_rank(BenchRank rank, const std::function<void(BenchRank& rank)>& part) {
  try {
    part(rank);
  } catch (const std::exception& error) {
    std::cerr << "rank " << rank.rank() << ": " << error.what() << std::endl;
    ::_exit(1);
  }
  std::cout.flush();
  ::_exit(0);
}

void check_index(int count) {
  if (count > rounds_max) throw std::runtime_error("too many rounds");
}

}  // namespace

double now_us() { return clock_us(CLOCK_MONOTONIC); }

void BenchRank::meet() { ::pthread_barrier_wait(&board_.all); }

double BenchRank::processor_us() const {
  double of_server_us = 0;
  clockid_t clock{};
  // Once, not by every rank.
  if (rank_ == 0 && ::clock_getcpuclockid(server_, &clock) == 0) of_server_us = clock_us(clock);
  return of_server_us + clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

std::vector<double> BenchRank::last_ends(int count) const {
  std::vector<double> last(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) {
    for (int rank = 0; rank < size_; ++rank) {
      double& end_us = last[static_cast<std::size_t>(index)];
      end_us = std::max(end_us, board_.places[rank].ends_us[index]);
    }
  }
  return last;
}

Json BenchRank::back_to_back(int count, const Work& work) {
  check_index(count);
  Board::Place& own = board_.places[rank_];
  meet();
  const double processor_before_us = processor_us();
  own.begin_us = now_us();
  for (int index = 0; index < count; ++index) {
    work(index);
    own.ends_us[index] = now_us();
  }
  meet();
  own.processor_us = processor_us() - processor_before_us;
  meet();
  Json found = Json::object();
  if (rank_ == 0) {
    double begin_us = own.begin_us;
    double all_processors_us = 0;
    for (int rank = 0; rank < size_; ++rank) {
      begin_us = std::min(begin_us, board_.places[rank].begin_us);
      all_processors_us += board_.places[rank].processor_us;
    }
    std::vector<double> ends_us = last_ends(count);
    std::vector<double> rounds_us;
    for (std::size_t index = 0; index < ends_us.size(); ++index) {
      rounds_us.push_back(ends_us[index] - (index == 0 ? begin_us : ends_us[index - 1]));
    }
    found = {{"round_us", (ends_us.back() - begin_us) / count},
             {"p50_us", quantile(rounds_us, 0.5)},
             {"p99_us", quantile(rounds_us, 0.99)},
             {"cpu_us", all_processors_us / count},
             {"operations", count}};
  }
  meet();
  return found;
}

Json BenchRank::alone(int count, const Work& work) {
  check_index(count);
  // So long that all others wait: each takes a processor for a moment to come there.
  const auto others_come = std::chrono::microseconds(500 + 200 * size_);
  Board::Place& own = board_.places[rank_];
  std::vector<double> begins_us;
  for (int index = 0; index < count; ++index) {
    meet();
    if (rank_ == 0) std::this_thread::sleep_for(others_come);
    begins_us.push_back(now_us());
    work(index);
    own.ends_us[index] = now_us();
  }
  meet();
  Json found = Json::object();
  if (rank_ == 0) {
    std::vector<double> took_us = last_ends(count);
    for (std::size_t index = 0; index < took_us.size(); ++index) {
      took_us[index] -= begins_us[index];
    }
    found = {{"alone_p50_us", quantile(took_us, 0.5)}, {"alone_p99_us", quantile(took_us, 0.99)}};
  }
  meet();
  return found;
}

double BenchRank::once_us(const std::function<double()>& work) {
  Board::Place& own = board_.places[rank_];
  meet();
  own.begin_us = now_us();
  own.end_us = work();
  meet();
  double begin_us = own.begin_us;
  double end_us = own.end_us;
  for (int rank = 0; rank < size_; ++rank) {
    begin_us = std::min(begin_us, board_.places[rank].begin_us);
    end_us = std::max(end_us, board_.places[rank].end_us);
  }
  meet();
  return end_us - begin_us;
}

BenchServer::BenchServer(const std::string& program)
    : process_([&] {
        test::Process::Options options;
        options.command = {program, "--listen", "127.0.0.1:0", "--log-level", "silent"};
        options.take_errors = false;
        return options;
      }()) {
  const auto line = process_.read_line();
  const auto before = line ? line->find_last_not_of("0123456789") : std::string::npos;
  if (before == std::string::npos) throw std::runtime_error(program + " does not start");
  address_ = "127.0.0.1:" + line->substr(before + 1);
}

void run_as_processes(int count, pid_t server, const std::function<void(BenchRank& rank)>& part) {
  const SharedBoard shared(count);
  const pid_t parent = ::getpid();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      be_rank(BenchRank(shared.board(), rank, count, server), part);
    }
    processes.push_back(pid);
  }
  bool has_failed = std::find(processes.begin(), processes.end(), -1) != processes.end();
  for (std::size_t left = processes.size(); left > 0; --left) {
    // The others wait for one that has failed.
    if (has_failed) {
      for (const pid_t pid : processes) {
        if (pid > 0) ::kill(pid, SIGKILL);
      }
    }
    int status = 0;
    const pid_t ended = ::wait(&status);
    if (ended < 0) break;
    std::replace(processes.begin(), processes.end(), ended, pid_t{0});
    has_failed = has_failed || status != 0;
  }
  if (has_failed) throw std::runtime_error("a rank has failed");
}

Environment environment_of(const BenchRank& rank, const std::string& address) {
  const std::string size = std::to_string(rank.size());
  const std::string own = std::to_string(rank.rank());
  return Environment({{"RANK", own},
                      {"WORLD_SIZE", size},
                      {"LOCAL_RANK", own},
                      {"LOCAL_WORLD_SIZE", size},
                      {"MUSTER_STORE", address}});
}

void init(Runtime& runtime, const std::string& communicators) {
  RuntimeOptions options;
  options.communicators = communicators;
#ifdef MUSTER_BENCH_GLOO
  options.makers.push_back(gloo_maker());
#endif
  must(runtime.init(std::move(options)));
}

}  // namespace muster::bench
