#pragma once

#include <memory>

namespace muster::net {

/// Keeps `object` until the process ends, reachable for leak checkers. For a forked child, where
/// the destructors of what the parent's I/O thread owns must not run.
void keep_forever(std::shared_ptr<void> object);

}  // namespace muster::net
