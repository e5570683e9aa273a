#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "log_format.h"
#include "muster/log.h"

namespace musterd {

/// Writes lines to a descriptor. Who logs never waits: what the descriptor does not take at once
/// is written by a thread, which ends a second after the last of it, and lines beyond a bound are
/// dropped and counted, and the count is written later. Lines for a file always take that way,
/// since a disk may be slow and nothing says so beforehand.
class LogQueue {
 public:
  LogQueue(int descriptor, LogFormat format);
  /// Waits a moment for the last lines, not for a descriptor that takes nothing.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  void add(muster::LogLevel level, std::string_view line);
  /// Lines that were not written, since the start.
  std::uint64_t dropped_count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace musterd
