#include "log_queue.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace musterd {
namespace {

constexpr std::size_t queued_bytes_max = 1U << 20;
constexpr auto last_lines_time = std::chrono::milliseconds(300);

std::string_view word_for(muster::LogLevel level) {
  switch (level) {
    case muster::LogLevel::debug: return "debug  ";
    case muster::LogLevel::info: return "info   ";
    case muster::LogLevel::warning: return "warning";
    case muster::LogLevel::error: return "error  ";
  }
  return "?      ";
}

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

std::string text_of(muster::LogLevel level, std::string_view line) {
  std::string text = timestamp();
  text.append(" ").append(word_for(level)).append(" ");
  for (const char letter : line) {  // names come from clients: no escapes for terminals
    const auto byte = static_cast<unsigned char>(letter);
    text += byte < 0x20 || byte == 0x7f ? '?' : letter;
  }
  return text += '\n';
}

/// Returns whether all of it was taken; waits for a descriptor that does not block by itself.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LogQueue::State {
  const int descriptor;
  const muster::LogLevel lowest;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable written;
  std::string queued;
  std::uint64_t queued_lines_count = 0;
  std::uint64_t dropped_count = 0;
  bool is_writing = false;
  bool is_stopping = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return is_stopping || !queued.empty(); });
      if (queued.empty()) return;
      const std::string lines = std::exchange(queued, {});
      const std::uint64_t lines_count = std::exchange(queued_lines_count, 0);
      is_writing = true;
      lock.unlock();
      const bool is_written = write_all(descriptor, lines);
      lock.lock();
      is_writing = false;
      if (!is_written) dropped_count += lines_count;
      if (is_written && dropped_count > 0) tell_of_dropped();
      written.notify_all();
    }
  }

  void tell_of_dropped() {
    queued += text_of(muster::LogLevel::warning, std::to_string(std::exchange(dropped_count, 0)) +
                                                     " lines were dropped: nobody took them");
    ++queued_lines_count;
  }
};

LogQueue::LogQueue(int descriptor, muster::LogLevel lowest)
    : state_(new State{descriptor, lowest, {}, {}, {}, {}}) {
  std::thread([state = state_] { state->run(); }).detach();
}

LogQueue::~LogQueue() {
  std::unique_lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->wake.notify_one();
  state_->written.wait_for(lock, last_lines_time,
                           [this] { return state_->queued.empty() && !state_->is_writing; });
}

void LogQueue::add(muster::LogLevel level, std::string_view line) {
  if (level < state_->lowest) return;
  const std::string text = text_of(level, line);
  const std::lock_guard lock(state_->mutex);
  if (state_->queued.size() + text.size() > queued_bytes_max) {
    ++state_->dropped_count;
    return;
  }
  state_->queued += text;
  ++state_->queued_lines_count;
  state_->wake.notify_one();
}

}  // namespace musterd
