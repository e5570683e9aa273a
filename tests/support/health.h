#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "muster/log.h"

namespace muster::test {

/// Reads a server's log until it stops, and fails the test then unless each connection that came
/// has begun a session of its own and none has broken off. So a client that reconnects behind the
/// scenes, or a server that ends a connection for no reason, is seen where no call fails.
class Health {
 public:
  /// A logger that hands all lines on to `next`, if there is one.
  static Logger logger(Logger next) {
    return [health = std::make_shared<Health>(), next = std::move(next)](LogLevel level,
                                                                         std::string_view line) {
      health->hear(level, line);
      if (next) next(level, line);
    };
  }

  void hear(LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex_);
    const auto has = [line](std::string_view part) { return line.find(part) != line.npos; };
    if (is_over_) return;
    if (line.starts_with("stopping: ")) return judge();
    if (line.ends_with(": accepted")) ++accepted_count_;
    if (has(" begun from ")) ++begun_count_;
    // A server that does not get to run answers nobody in time, and is not to blame.
    if (line.starts_with("the server did not run for ")) is_over_ = true;
    const bool is_broken = (level >= LogLevel::info && has(": ended: ")) ||
                           (level >= LogLevel::warning && has(": closed: "));
    if (is_broken || has(" resumed from ") || has(" is lost: ") || has(": refused: ") ||
        has("out of resources: ")) {
      troubles_ += "\n  " + std::string(line);
    }
    if (!line.ends_with(" more lines were left out")) return;
    is_complete_ = false;  // the lines of so many connections are not all there
    if (level >= LogLevel::warning) troubles_ += "\n  " + std::string(line);
  }

 private:
  void judge() {
    is_over_ = true;
    CHECK_MESSAGE(troubles_.empty(), "in the server's log:", troubles_);
    if (!is_complete_) return;
    CHECK_MESSAGE(accepted_count_ == begun_count_, accepted_count_, " connections and ",
                  begun_count_, " sessions");
  }

  std::mutex mutex_;
  bool is_over_ = false;
  bool is_complete_ = true;
  int accepted_count_ = 0;
  int begun_count_ = 0;
  std::string troubles_;
};

}  // namespace muster::test
