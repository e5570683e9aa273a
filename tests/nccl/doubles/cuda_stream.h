#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace cuda_double {

/// How many threads and pieces of work of all streams there are.
struct StreamCounts {
  std::atomic<long> threads{0};
  std::atomic<long> queued{0};
};
StreamCounts& stream_counts();

/// A queue whose work one thread does in order. The thread ends once the stream is closed and
/// nothing is left of it, as a stream's resources do.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Work = std::function<void()>;

  static std::shared_ptr<Stream> start();

  /// Gives the number of the work: works are numbered from 1.
  std::uint64_t enqueue(Work work);
  std::uint64_t last_number() const;
  bool has_done(std::uint64_t number) const;
  void wait_for(std::uint64_t number);
  void wait() { wait_for(last_number()); }
  void close();

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t done_ = 0;
  bool is_closed_ = false;
};

}  // namespace cuda_double
