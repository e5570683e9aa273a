#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>

#include "client/failure.h"

namespace muster::communicator {

/// Knows the process that made it. A forked child of that has none of its threads, and its locks as
/// they were.
class Owner {
 public:
  bool is_forked() const { return ::getpid() != pid_; }

 private:
  const pid_t pid_ = ::getpid();
};

/// What every call of a forked child is told.
inline Error forked() {
  return client::failure(ErrorCode::forked, "the communicator belongs to the parent process");
}

/// Keeps `object` until the process ends, reachable for leak checkers. For a forked child, where
/// the destructors of what belongs to the parent's threads must not run.
void keep_forever(std::shared_ptr<void> object);

}  // namespace muster::communicator
