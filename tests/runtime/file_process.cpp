#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "muster/file_lock.h"
#include "muster/signal_file.h"

// A process that shares files with others: `runtime_file_process ROLE WORDS...`
//
//     counts LOCK FILE TIMES   adds 1 to the number in the file, under the lock, so many times
//     holds LOCK               acquires the lock, prints "held", and waits for SIGUSR1
//     leads FOLDER             works first, as the environment says, prints "works", and does so
//                              until SIGUSR1

namespace {

using namespace std::chrono_literals;

void wait_for_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  int received = 0;
  sigwait(&signals, &received);
}

int failed(const muster::Error& error) {
  std::cout << error.message() << std::endl;
  return 1;
}

int count(const std::string& path, const std::string& file, int times) {
  for (int time = 0; time < times; ++time) {
    muster::FileLockOptions options;
    options.timeout = 20s;
    auto lock = muster::FileLock::acquire(path, options);
    if (!lock) return failed(lock.error());
    int number = 0;
    std::ifstream(file) >> number;
    std::ofstream(file) << number + 1;
  }
  return 0;
}

int hold(const std::string& path) {
  muster::FileLockOptions options;
  options.label = "holder";
  const auto lock = muster::FileLock::acquire(path, options);
  if (!lock) return failed(lock.error());
  std::cout << "held" << std::endl;
  wait_for_signal();
  return 0;
}

int lead(const std::string& folder) {
  auto signals = muster::SignalFolder::open(folder);
  if (!signals) return failed(signals.error());
  const auto done = muster::local_rank_zero_first(*signals, [](muster::Progress&) {
    std::cout << "works" << std::endl;
    wait_for_signal();
  });
  return done ? 0 : failed(done.error());
}

}  // namespace

int main(int count_of_words, char** words) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::string_view role = count_of_words > 2 ? words[1] : "";
  if (role == "counts" && count_of_words == 5)
    return count(words[2], words[3], std::atoi(words[4]));
  if (role == "holds") return hold(words[2]);
  if (role == "leads") return lead(words[2]);
  return 2;
}
