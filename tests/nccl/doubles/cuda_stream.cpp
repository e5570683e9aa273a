#include "nccl/doubles/cuda_stream.h"

#include <thread>
#include <utility>

// The life of a stream: start() makes its thread, which holds the stream alive. Work is numbered
// when it is enqueued and done in that order; close() lets the thread end after the last one.

namespace cuda_double {

StreamCounts& stream_counts() {
  static auto* const counts = new StreamCounts;  // threads may outlive the statics
  return *counts;
}

std::shared_ptr<Stream> Stream::start() {
  auto stream = std::make_shared<Stream>();
  ++stream_counts().threads;
  std::thread([stream] { stream->run(); }).detach();
  return stream;
}

std::uint64_t Stream::enqueue(Work work) {
  const std::lock_guard lock(mutex_);
  ++stream_counts().queued;
  queue_.push_back(std::move(work));
  changed_.notify_all();
  return ++enqueued_;
}

std::uint64_t Stream::last_number() const {
  const std::lock_guard lock(mutex_);
  return enqueued_;
}

bool Stream::has_done(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Stream::wait_for(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_closed_ || !queue_.empty(); });
    if (queue_.empty()) break;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes before it counts as done
    lock.lock();
    --stream_counts().queued;
    ++done_;
    changed_.notify_all();
  }
  --stream_counts().threads;
}

}  // namespace cuda_double
