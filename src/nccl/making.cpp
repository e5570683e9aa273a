#include "nccl/making.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "client/failure.h"
#include "nccl/library.h"

namespace muster::nccl {
namespace {

/// Shared by the caller and the thread that makes the id.
struct Making {
  std::mutex mutex;
  std::condition_variable wake;
  bool is_awaited = true;
  std::optional<Result<NcclUniqueId>> made;
};

Result<NcclUniqueId> make(const std::string& path) {
  const auto library = Library::load(path);
  if (!library) return library.error();
  return library->new_unique_id();
}

void make_for(Making& making, const std::string& path) {
  auto id = make(path);
  {
    const std::lock_guard lock(making.mutex);
    if (making.is_awaited) {
      making.made = std::move(id);
      return making.wake.notify_one();
    }
  }
  if (id) nccl_give_up(*id);
}

/// A thread of ours takes none of the host's signals.
void start(std::shared_ptr<Making> making, const std::string& path) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([making = std::move(making), path] {
      ::pthread_setname_np(::pthread_self(), "muster-nccl");
      make_for(*making, path);
    }).detach();
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Result<NcclUniqueId> make_id(const std::string& library, Duration timeout) {
  const auto making = std::make_shared<Making>();
  try {
    start(making, library);
  } catch (const std::system_error&) {
    return client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
  }
  std::unique_lock lock(making->mutex);
  making->wake.wait_for(lock, timeout, [&] { return making->made.has_value(); });
  making->is_awaited = false;
  if (making->made) return *std::move(making->made);
  return client::failure(ErrorCode::timed_out, "libnccl did not make an id in time");
}

}  // namespace muster::nccl
