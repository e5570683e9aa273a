#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/time.h"
#include "client/link/cancel_requests.h"
#include "client/link/direct_writer.h"
#include "client/link/epoch_watchers.h"
#include "client/link/establishments.h"
#include "client/link/pending_calls.h"
#include "client/protocol/protocol.h"
#include "muster/store.h"

namespace muster::client {

/// What the callers of a link and its I/O thread share.
struct LinkState {
  // Each sees to itself.

  CancelRequests cancels;
  EpochWatchers watchers;
  /// What is in here cannot be trusted any more: the I/O thread ends the session and every call.
  std::atomic<bool> is_broken{false};
  /// Whether `on_session_end` is told of an end that comes now.
  std::atomic<bool> tells_session_ends{true};

  /// Of all that follows. Never held while somebody else's code runs.
  mutable std::mutex mutex;
  std::unique_ptr<protocol::Protocol> protocol;
  PendingCalls pending;
  Establishments establishments;
  DirectWriter direct;
  Instant armed_for = base::far_future;  ///< when the I/O thread looks by itself
  Limits limits;                         ///< as the server that answered last said
  std::uint64_t incarnation = 0;
  bool is_closing = false;
  bool is_finished = false;
  std::condition_variable finished;
};

}  // namespace muster::client
