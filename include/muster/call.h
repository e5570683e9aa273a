#pragma once

#include <cstdint>
#include <memory>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

/// A call that a callback form has begun: what its function returns, for whoever may want to end
/// that call before its time. It may be dropped, which changes nothing.
///
/// It keeps nothing alive, and may outlive the call, its handler and the store.
class MUSTER_API Call {
 public:
  Call() noexcept;  ///< of no call
  ~Call();
  Call(const Call&) noexcept;
  Call(Call&&) noexcept;
  Call& operator=(const Call&) noexcept;
  Call& operator=(Call&&) noexcept;

  /// Ends that call, and no other, as `Store::cancel` would: its handler gets `cancelled`, or what
  /// became of the call before. A collective or regroup is cancelled for all ranks. That, a `take`
  /// and a `queue_pop` end as soon as the server has answered; when it does not within 2 s, with
  /// `outcome_unknown` here. Never blocks, and never runs a handler itself. Nothing happens when
  /// the call is over.
  ///
  /// threads  any, also from handlers; not from signal handlers
  void cancel() noexcept;

  class Impl;
  Call(std::weak_ptr<Impl> impl, std::uint64_t number) noexcept;

 private:
  std::weak_ptr<Impl> impl_;  ///< of what began it
  std::uint64_t number_ = 0;  ///< there
};

MUSTER_END_NAMESPACE
