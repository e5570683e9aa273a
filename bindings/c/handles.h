#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "muster/c.h"
#include "muster/call.h"
#include "muster/io_thread.h"
#include "muster/process_group.h"
#include "muster/store.h"

// What is behind the opaque types of muster/c.h. Each belongs to the application, which frees it.

namespace muster::c {

/// A call in its callback form. The application may cancel it before the function that begins it
/// has got it: `done` may already have run, and told another thread of it.
class PendingCall {
 public:
  void begun(Call call) noexcept {
    const std::unique_lock lock(mutex_);
    call_ = std::move(call);
    has_begun_ = true;
    if (is_cancelled_) call_.cancel();
  }

  void cancel() noexcept {
    const std::unique_lock lock(mutex_);
    is_cancelled_ = true;
    if (has_begun_) call_.cancel();
  }

 private:
  std::mutex mutex_;
  Call call_;
  bool has_begun_ = false;
  bool is_cancelled_ = false;
};

}  // namespace muster::c

struct muster_call {
  std::shared_ptr<muster::c::PendingCall> pending;
};

struct muster_bytes {
  std::string bytes;
};

struct muster_list {
  std::vector<std::optional<std::string>> elements;
};

struct muster_ranks {
  std::vector<muster::RankRange> ranges;
};

struct muster_page {
  muster::KeyPage page;
};

struct muster_io_thread {
  std::shared_ptr<muster::IoThread> thread;
};

struct muster_store {
  explicit muster_store(muster::Store its_store)
      : store(std::move(its_store)), process_id(to_string(store.process().id)) {}

  muster::Store store;
  std::string process_id;
};

struct muster_group {
  muster::StatelessProcessGroup group;
};

struct muster_watch {
  muster::GroupWatch watch;
};

struct muster_delivery {
  muster::Delivery delivery;
  std::optional<muster::ReceivedBytes> accepted;
};

struct muster_recovered {
  std::uint64_t round = 0;
  bool called = false;
  muster::c::ErrorPointer error;
  muster_list values;
};
