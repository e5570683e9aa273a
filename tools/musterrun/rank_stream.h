#pragma once

#include <memory>
#include <string>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/file_handle.h"
#include "console.h"

namespace musterrun {

/// Where one output of one rank goes.
struct StreamTarget {
  std::string file;       ///< it is appended to; empty: none
  bool is_shown = false;  ///< on musterrun's own output
  std::string prefix;     ///< of each line that is shown
  Console::Stream stream = Console::Stream::output;
};

/// Standard output or standard error of one rank. What is only written to a file the rank writes
/// itself; else it writes to a pipe, and musterrun passes it on. The last bytes are kept for
/// the report of a failure.
///
/// threads  that of the context
class RankStream {
 public:
  /// errno  is set if it is not open then
  RankStream(asio::io_context& context, Console& console, StreamTarget target);
  /// Passes on what the rank has written.
  ~RankStream();
  RankStream(const RankStream&) = delete;
  RankStream& operator=(const RankStream&) = delete;

  bool is_open() const { return static_cast<bool>(end_of_rank_); }
  int descriptor_of_rank() const { return end_of_rank_.get(); }
  /// The rank has it.
  void release() { end_of_rank_.close(); }
  /// Takes what the rank has written so far.
  void drain();
  /// Its last bytes, from the begin of a line.
  std::string tail() const;

 private:
  struct State;
  static void read(const std::shared_ptr<State>& state);

  muster::base::FileHandle end_of_rank_;
  std::shared_ptr<State> state_;
};

}  // namespace musterrun
