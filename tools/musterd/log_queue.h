#pragma once

#include <memory>
#include <string_view>

#include "muster/log.h"

namespace musterd {

/// Writes lines to a descriptor on a thread of its own. Who logs never waits: while the descriptor
/// takes nothing, lines beyond a bound are dropped and counted, and the count is written later.
class LogQueue {
 public:
  LogQueue(int descriptor, muster::LogLevel lowest);
  /// Waits a moment for the last lines, not for a descriptor that takes nothing.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  void add(muster::LogLevel level, std::string_view line);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace musterd
