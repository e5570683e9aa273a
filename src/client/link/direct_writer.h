#pragma once

#include <string>
#include <utility>

#include "client/link/world.h"
#include "client/protocol/effects.h"

namespace muster::client {

/// Lets whoever calls write to the connection itself, while the I/O thread has nothing to write
/// there: that spares the I/O thread's being woken. Under the link's lock.
class DirectWriter {
 public:
  /// Until `forbid` the I/O thread leaves the descriptor to callers.
  void allow(int descriptor) { descriptor_ = descriptor; }
  void forbid() { descriptor_ = -1; }
  bool is_allowed() const { return descriptor_ >= 0; }

  /// Writes what there is to do, if that is to transmit and nothing else. What the socket does not
  /// take is left over, and nobody writes until the I/O thread has taken that.
  ///
  /// returns  whether nothing is left to do
  bool write(protocol::Effects& effects, World& world);

  /// What goes out before anything else.
  bool has_leftover() const { return !leftover_.empty(); }
  std::string take_leftover() { return std::exchange(leftover_, {}); }

 private:
  int descriptor_ = -1;
  std::string leftover_;
};

}  // namespace muster::client
