#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/without_signals.h"
#include "client/failure.h"
#include "muster/result.h"

namespace muster::communicator {

/// Starts a thread that handles none of the host's signals.
///
/// returns  whether the system had one, and memory for it
template <class Work>
bool start_thread(const char* name, Work work) {
  const base::WithoutSignals guard;
  try {
    std::thread([name, work = std::move(work)]() mutable {
      ::pthread_setname_np(::pthread_self(), name);
      work();
    }).detach();
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

/// The result of `work`; an exception becomes an error.
template <class T, class Work>
Result<T> caught(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return client::failure(ErrorCode::resource_exhausted, "out of memory");
  } catch (const std::exception& thrown) {
    return client::failure(ErrorCode::internal, thrown.what());
  }
}

/// Runs `work`, which may block without end, on its own thread, and waits until it returns, until
/// `timeout` has passed, or until `is_cancelled` holds. A result that comes too late goes to
/// `drop`.
///
/// errors  those of `work`, timed_out (detail: `what`), resource_exhausted (no thread)
template <class T, class Work, class Drop>
Result<T> call_with_timeout(const char* what, Duration timeout, Work work, Drop drop,
                            const std::function<bool()>& is_cancelled = {}) {
  struct SharedCall {
    std::mutex mutex;
    std::condition_variable wake;
    bool is_awaited = true;
    std::optional<Result<T>> done;
  };
  const auto shared = std::make_shared<SharedCall>();
  const bool is_started =
      start_thread("muster-waits", [shared, work = std::move(work), drop = std::move(drop)] {
        Result<T> result = caught<T>(work);
        {
          const std::lock_guard lock(shared->mutex);
          if (shared->is_awaited) {
            shared->done = std::move(result);
            return shared->wake.notify_one();
          }
        }
        drop(std::move(result));
      });
  if (!is_started) {
    return client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
  }
  std::unique_lock lock(shared->mutex);
  constexpr std::chrono::milliseconds between_looks{5};
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!shared->done && std::chrono::steady_clock::now() < until &&
         !(is_cancelled && is_cancelled())) {
    const auto next_look = std::chrono::steady_clock::now() + between_looks;
    shared->wake.wait_until(lock, is_cancelled ? std::min(until, next_look) : until);
  }
  shared->is_awaited = false;
  if (shared->done) return *std::move(shared->done);
  return client::failure(ErrorCode::timed_out, std::string(what) + " did not return in time");
}

}  // namespace muster::communicator
