#include "console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace musterrun {

namespace {

constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;
constexpr std::chrono::seconds last_words{5};

/// returns  whether all of it is written
bool write_all(int descriptor, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {  // somebody else has set it so
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

Console::Console() : thread_([this] { run(); }) {}

Console::~Console() {
  if (thread_.joinable()) thread_.join();
}

bool Console::finish(Patience patience) {
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  changed_.notify_all();
  const auto has_ended = [this] { return has_ended_; };
  if (patience == Patience::brief) return changed_.wait_for(lock, last_words, has_ended);
  changed_.wait(lock, has_ended);
  return true;
}

void Console::write(Stream stream, std::string bytes) {
  const std::lock_guard lock(mutex_);
  if (is_broken_[static_cast<int>(stream)]) return;
  bytes_ += bytes.size();
  pieces_.push_back({stream, std::move(bytes)});
  changed_.notify_all();
}

bool Console::is_full(std::function<void()> resume) {
  const std::lock_guard lock(mutex_);
  if (bytes_ < waiting_bytes_max) return false;
  resumed_.push_back(std::move(resume));
  return true;
}

bool Console::is_broken(Stream stream) const {
  const std::lock_guard lock(mutex_);
  return is_broken_[static_cast<int>(stream)];
}

void Console::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !pieces_.empty(); });
    if (pieces_.empty()) break;
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    const auto number = static_cast<int>(piece.stream);
    lock.unlock();
    const bool is_written = is_broken_[number] || write_all(number, piece.bytes);
    lock.lock();
    bytes_ -= piece.bytes.size();
    if (!is_written) is_broken_[number] = true;
    if (bytes_ >= waiting_bytes_max) continue;
    std::deque<std::function<void()>> resumed;
    resumed.swap(resumed_);
    lock.unlock();
    for (const auto& resume : resumed) resume();
    lock.lock();
  }
  has_ended_ = true;
  changed_.notify_all();
}

}  // namespace musterrun
