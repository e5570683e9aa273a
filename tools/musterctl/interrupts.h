#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace musterctl {

/// While it lives, SIGINT, SIGTERM and SIGHUP end the program in order: `wait` says so. Whoever
/// does not wait then, because it hears nothing from the server or writes where nobody reads, is
/// ended with exit code 0 a moment later.
///
/// To be made before any other thread, which would take the signals otherwise.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  enum class Event { time_is_over, asked_to_end, nobody_reads, typed };
  /// Lets time pass until then, unless a signal comes, the reader of the standard output goes, or
  /// `keyboard` (-1: none) can be read.
  Event wait_until(std::chrono::steady_clock::time_point until, int keyboard) const;

 private:
  void take_signals();

  int ends_[2] = {-1, -1};  // of a pipe: readable once a signal has come
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace musterctl
