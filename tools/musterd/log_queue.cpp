#include "log_queue.h"

#include <signal.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "outlet.h"

namespace musterd {
namespace {

constexpr std::size_t queued_bytes_max = 1U << 20;
constexpr auto thread_linger = std::chrono::seconds(1);
constexpr auto last_lines_time = std::chrono::milliseconds(300);

/// "2026-01-31T12:00:00.123Z"; for people: nothing is decided by it.
std::string timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ",
                static_cast<int>(now.tv_nsec / 1'000'000 % 1000));
  return text.data();
}

}  // namespace

struct LogQueue::State : std::enable_shared_from_this<State> {
  State(int descriptor, LogFormat its_format) : outlet(descriptor), format(its_format) {}

  const Outlet outlet;
  const LogFormat format;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable written;
  std::string queued;
  std::uint64_t queued_lines_count = 0;
  std::uint64_t dropped_count = 0;
  std::uint64_t told_count = 0;  ///< of those dropped
  bool has_thread = false;       ///< which writes what is queued
  bool is_writing = false;
  bool is_stopping = false;

  std::string text_of(muster::LogLevel level, std::string_view line) const {
    return log_line(format, timestamp(), level, line);
  }

  void add(std::string_view text) {
    if (queued.size() + text.size() > queued_bytes_max) {
      ++dropped_count;
      return;
    }
    queued += text;
    ++queued_lines_count;
    if (has_thread) {
      wake.notify_one();
    } else {
      write_at_once();
    }
  }

  void write_at_once() {
    while (!queued.empty()) {
      const long count = outlet.write_some(queued);
      if (count < 0) return drop();
      queued.erase(0, static_cast<std::size_t>(count));
      if (!queued.empty()) return start_thread();
      queued_lines_count = 0;
      if (dropped_count != told_count) tell_of_dropped();
    }
  }

  void start_thread() {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // they are for the thread that serves
    try {
      std::thread([self = shared_from_this()] { self->run(); }).detach();
      has_thread = true;
    } catch (const std::exception&) {  // no thread, no memory: the next line tries anew
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() {
    std::unique_lock lock(mutex);
    while (wake.wait_for(lock, thread_linger, [this] { return is_stopping || !queued.empty(); })) {
      if (queued.empty()) break;
      const std::string lines = std::exchange(queued, {});
      const std::uint64_t lines_count = std::exchange(queued_lines_count, 0);
      is_writing = true;
      lock.unlock();
      const bool is_written = outlet.write_all(lines);
      lock.lock();
      is_writing = false;
      if (!is_written) dropped_count += lines_count;
      if (is_written && dropped_count != told_count) tell_of_dropped();
      written.notify_all();
    }
    has_thread = false;
  }

  void drop() {
    dropped_count += std::exchange(queued_lines_count, 0);
    queued.clear();
  }

  void tell_of_dropped() noexcept {
    try {
      queued += text_of(muster::LogLevel::warning, std::to_string(dropped_count - told_count) +
                                                       " lines were dropped: nobody took them");
    } catch (const std::bad_alloc&) {
      return;  // told behind the next line
    }
    told_count = dropped_count;
    ++queued_lines_count;
  }
};

LogQueue::LogQueue(int descriptor, LogFormat format)
    : state_(std::make_shared<State>(descriptor, format)) {}

LogQueue::~LogQueue() {
  std::unique_lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->wake.notify_one();
  state_->written.wait_for(lock, last_lines_time,
                           [this] { return state_->queued.empty() && !state_->is_writing; });
}

void LogQueue::add(muster::LogLevel level, std::string_view line) {
  const std::string text = state_->text_of(level, line);
  const std::lock_guard lock(state_->mutex);
  state_->add(text);
}

std::uint64_t LogQueue::dropped_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped_count;
}

}  // namespace musterd
