#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace musterrun {

/// What a file system says only when a file is closed: some write later, and may have no room then.
///
/// returns  0, or errno
int error_of_last_writes(int descriptor);

/// Writes to standard output and standard error from a thread of its own: who reads those may stop,
/// and musterrun goes on meanwhile.
///
/// threads  any
class Console {
 public:
  enum class Stream : int { output = 1, errors = 2 };

  Console();
  /// `finish` comes before.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  enum class Patience : std::uint8_t {
    endless,  ///< as long as somebody may read, as any program has
    brief,    ///< for a few seconds
  };
  /// Writes what is there.
  ///
  /// returns  whether all is written; if not, its thread is in a write that does not end
  bool finish(Patience patience);

  void write(Stream stream, std::string bytes);
  /// Something that was to be shown or kept is lost, which this says on standard error.
  void lose(std::string text);
  /// Whether anything is, in files or on a stream that takes no more.
  bool has_lost() const;
  /// Whether so much waits that no more is to be read of the ranks; then `resume` is called once,
  /// on the thread that writes, when there is room.
  bool is_full(std::function<void()> resume);
  /// Nobody reads that stream any more.
  bool is_broken(Stream stream) const;

 private:
  struct Piece {
    Stream stream;
    std::string bytes;
  };
  void run();
  void give_up(Stream stream, int error);
  void add_loss(std::string text);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;
  bool is_broken_[3] = {};
  bool has_lost_ = false;
  bool is_ending_ = false;
  bool has_ended_ = false;
  std::deque<std::function<void()>> resumed_;
  std::thread thread_;
};

}  // namespace musterrun
