#include "console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace musterrun {

namespace {

constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;
constexpr std::chrono::seconds last_words{5};

/// returns  0, or errno
int write_all(int descriptor, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {  // somebody else has set it so
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

int error_of_last_writes(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return copy < 0 || ::close(copy) == 0 || errno == EINTR ? 0 : errno;
}

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

void Console::lose(std::string text) {
  const std::lock_guard lock(mutex_);
  add_loss(std::move(text));
}

void Console::add_loss(std::string text) {
  has_lost_ = true;
  if (is_broken_[static_cast<int>(Stream::errors)]) return;
  bytes_ += text.size();
  pieces_.push_back({Stream::errors, std::move(text)});
  changed_.notify_all();
}

bool Console::has_lost() const {
  const std::lock_guard lock(mutex_);
  return has_lost_;
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

/// Of a stream that takes no more.
void Console::give_up(Stream stream, int error) {
  bool& is_broken = is_broken_[static_cast<int>(stream)];
  if (error == 0 || is_broken) return;
  is_broken = true;
  add_loss(std::string("musterrun: the standard output takes no more: ") + std::strerror(error) +
           "; what follows is lost\n");
}

void Console::run() {
  std::unique_lock lock(mutex_);
  for (bool are_checked = false;;) {
    changed_.wait(lock, [this] { return is_ending_ || !pieces_.empty(); });
    if (pieces_.empty() && are_checked) break;
    if (pieces_.empty()) {
      are_checked = true;
      lock.unlock();
      const int errors[] = {error_of_last_writes(1), error_of_last_writes(2)};
      lock.lock();
      give_up(Stream::output, errors[0]);
      give_up(Stream::errors, errors[1]);
      continue;
    }
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    const auto number = static_cast<int>(piece.stream);
    const bool is_broken = is_broken_[number];
    lock.unlock();
    const int error = is_broken ? 0 : write_all(number, piece.bytes);
    lock.lock();
    bytes_ -= piece.bytes.size();
    give_up(piece.stream, error);
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
