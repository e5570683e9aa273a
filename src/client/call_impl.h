#pragma once

#include <cstdint>

#include "muster/call.h"

MUSTER_BEGIN_NAMESPACE

/// What began calls and can end one of them, by its number there.
class Call::Impl {
 public:
  /// From any thread. Nothing if there is no such call any more; never runs a handler.
  virtual void cancel(std::uint64_t number) noexcept = 0;

 protected:
  ~Impl() = default;
};

MUSTER_END_NAMESPACE
