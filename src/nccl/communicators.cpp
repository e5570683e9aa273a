#include <algorithm>
#include <latch>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/forked.h"
#include "client/failure.h"
#include "communicator/errors.h"
#include "communicator/timed_call.h"
#include "nccl/communicator_impl.h"
#include "nccl/creation.h"

// The communicators of a host, by rank and what a group's epoch is: the server's incarnation and
// its number.

MUSTER_BEGIN_NAMESPACE

namespace nccl {

class Communicators::Impl {
 public:
  using Key = std::tuple<std::uint64_t, std::uint64_t, int>;
  using Held = std::shared_ptr<Communicator>;

  static Key key_of(const StatelessProcessGroup& group) {
    return {group.store().incarnation(), group.epoch(), group.rank()};
  }

  /// The old value is destroyed by the caller, without the lock.
  void keep(const Key& key, Held& held) {
    const std::lock_guard lock(mutex_);
    std::swap(held_[key], held);
  }
  Held find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    return found == held_.end() ? nullptr : found->second;
  }
  void drop(const Key& key) {
    Held dropped;  // goes without the lock
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (found == held_.end()) return;
    dropped = std::move(found->second);
    held_.erase(found);
  }
  std::size_t drop_ended() {
    auto ended = all();  // asked, and gone, without the lock: their hosts' handlers may come here
    ended.erase(
        std::remove_if(ended.begin(), ended.end(), [](const Held& each) { return !each->error(); }),
        ended.end());
    const std::lock_guard lock(mutex_);
    return std::erase_if(held_, [&](const auto& each) {
      return std::find(ended.begin(), ended.end(), each.second) != ended.end();
    });
  }
  std::vector<Held> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Held> all;
    for (const auto& [key, held] : held_) all.push_back(held);
    return all;
  }
  const std::shared_ptr<nccl_internal::Shared>& shared() const { return shared_; }
  const base::Owner& owner() const { return owner_; }

 private:
  const base::Owner owner_{};
  mutable std::mutex mutex_;
  std::map<Key, Held> held_;
  const std::shared_ptr<nccl_internal::Shared> shared_ = std::make_shared<nccl_internal::Shared>();
};

namespace {

/// Null where it was moved from, or is inherited: a forked child may wait for its lock for ever.
Communicators::Impl* usable(const std::shared_ptr<Communicators::Impl>& impl) {
  return impl && !impl->owner().is_forked() ? impl.get() : nullptr;
}

}  // namespace

Communicators::Communicators() : impl_(std::make_shared<Impl>()) {}
Communicators::Communicators(Communicators&&) noexcept = default;

Communicators& Communicators::operator=(Communicators&& other) noexcept {
  if (this == &other) return *this;
  const Communicators gone(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Communicators::~Communicators() {
  if (!impl_) return;
  if (impl_->owner().is_forked()) {
    base::keep_forever(std::move(impl_));
  } else {
    abort_all();
  }
}

Result<std::shared_ptr<Communicator>> Communicators::create(StatelessProcessGroup& group,
                                                            int device, Options options) {
  if (!impl_) return muster::communicator::moved_from("create");
  if (impl_->owner().is_forked()) return muster::communicator::forked();
  auto made = nccl_internal::Creation(group, device, std::move(options), impl_->shared()).run();
  if (!made) return std::move(made).error();
  std::shared_ptr<Communicator> held(new Communicator(*std::move(made)));
  auto replaced = held;
  impl_->keep(Impl::key_of(group), replaced);
  return held;
}

std::vector<Result<std::shared_ptr<Communicator>>> Communicators::create_all(
    Span<const Request> requests) {
  using Made = Result<std::shared_ptr<Communicator>>;
  std::vector<Made> made(requests.size(), Made(client::invalid_argument("group: null")));
  const auto done = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(requests.size()));
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const bool is_started = muster::communicator::start_thread("muster-create", [&, index, done] {
      const Request& request = requests[index];
      if (request.group != nullptr) {
        made[index] = create(*request.group, request.device, request.options);
      }
      done->count_down();
    });
    if (is_started) continue;
    made[index] = client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
    done->count_down();
  }
  done->wait();
  return made;
}

std::shared_ptr<Communicator> Communicators::find(const StatelessProcessGroup& group) const {
  const Impl* const impl = usable(impl_);
  return impl != nullptr ? impl->find(Impl::key_of(group)) : nullptr;
}

void Communicators::drop(const StatelessProcessGroup& group) {
  if (Impl* const impl = usable(impl_)) impl->drop(Impl::key_of(group));
}

std::size_t Communicators::drop_ended() {
  Impl* const impl = usable(impl_);
  return impl != nullptr ? impl->drop_ended() : 0;
}

std::vector<std::shared_ptr<Communicator>> Communicators::all() const {
  const Impl* const impl = usable(impl_);
  return impl != nullptr ? impl->all() : std::vector<std::shared_ptr<Communicator>>();
}

std::size_t Communicators::count() const { return all().size(); }

void Communicators::abort_all() {
  const auto held = all();
  std::vector<Communicator*> communicators;
  for (const auto& each : held) communicators.push_back(each.get());
  Communicator::abort_all(communicators);
}

}  // namespace nccl

MUSTER_END_NAMESPACE
