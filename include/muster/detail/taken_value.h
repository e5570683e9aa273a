#pragma once

// What a `take` or a `queue_pop` has brought, before the program has it. For code that carries
// Muster's calls to programs that can be cancelled meanwhile: muster/asio.h and the Python package.

#include <memory>
#include <string>
#include <string_view>

#include "muster/call.h"
#include "muster/store.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// A value that the server keeps until the program has it. What is destroyed before it was accepted
/// is given back: it is there again as if the call had been cancelled in time.
///
/// threads  any; one at a time
class MUSTER_API TakenValue {
 public:
  TakenValue(TakenValue&&) noexcept;
  TakenValue& operator=(TakenValue&&) noexcept;
  ~TakenValue();

  /// The program has it. Once.
  std::string accept();

  /// Gives it back. Once; never blocks.
  ///
  /// handler  gets `cancelled` when it is there again; the value when that cannot be, since its key
  ///          has been set again, or its session is over; `outcome_unknown` when the server has not
  ///          answered within 2 s
  void give_back(Handler<TakenValue> handler);

  class Impl;
  explicit TakenValue(std::shared_ptr<Impl> impl) noexcept;

 private:
  std::shared_ptr<Impl> impl_;
};

/// As `Store::take_async` and `Store::queue_pop_async`, but the program has the value only when it
/// has accepted it.
MUSTER_API Call take_async(Store* store, std::string_view key, Duration timeout,
                           Handler<TakenValue> handler);
MUSTER_API Call queue_pop_async(Store* store, std::string_view key, Duration timeout,
                                Handler<TakenValue> handler);

}  // namespace detail

MUSTER_END_NAMESPACE
