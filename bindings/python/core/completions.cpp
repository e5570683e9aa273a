#include "completions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "gil.h"

namespace muster::python {

namespace {

/// Values that are on their way back to the server, and that no task waits for.
std::atomic<int> returning = 0;

void drop(Kept& kept) {
  ++returning;
  if (!kept.give_back([](std::unique_ptr<Kept>) { --returning; })) --returning;
}

/// Those that there are, for the end of the interpreter. Under the GIL.
std::vector<std::weak_ptr<Completions>>& existing() {
  static auto* const all = new std::vector<std::weak_ptr<Completions>>;
  return *all;
}

}  // namespace

Completions::Completions()
    : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), process_(::getpid()) {
  if (descriptor_ >= 0) return;
  PyErr_SetFromErrno(PyExc_OSError);
  throw py::error_already_set();
}

std::shared_ptr<Completions> Completions::create() {
  std::shared_ptr<Completions> made(new Completions);
  std::erase_if(existing(), [](const auto& each) { return each.expired(); });
  existing().push_back(made);
  return made;
}

Completions::~Completions() { ::close(descriptor_); }

void Completions::put(std::uint64_t token, std::unique_ptr<Kept> kept) {
  std::unique_lock lock(mutex_);
  if (is_closed_) {
    lock.unlock();
    return drop(*kept);
  }
  all_[token] = std::move(kept);
  unseen_.push_back(token);
  if (unseen_.size() > 1) return;  // it is readable already
  const std::uint64_t one = 1;
  static_cast<void>(!::write(descriptor_, &one, sizeof(one)));
}

std::vector<std::uint64_t> Completions::look() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  static_cast<void>(!::read(descriptor_, &count, sizeof(count)));
  return std::exchange(unseen_, {});
}

bool Completions::has(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  return all_.count(token) != 0;
}

std::unique_ptr<Kept> Completions::removed(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(token);
  if (found == all_.end()) return nullptr;  // closed
  std::unique_ptr<Kept> kept = std::move(found->second);
  all_.erase(found);
  return kept;
}

py::tuple Completions::take(std::uint64_t token) {
  const std::unique_ptr<Kept> kept = removed(token);
  if (!kept) raise_closed("the event loop was closed");
  auto [is_value, object] = kept->take();
  return py::make_tuple(is_value, std::move(object));
}

bool Completions::give_back(std::uint64_t token) {
  std::unique_ptr<Kept> kept = removed(token);
  const WithoutGil released;
  if (!kept) return false;
  const auto put_again = [self = shared_from_this(), token](std::unique_ptr<Kept> outcome) {
    self->put(token, std::move(outcome));
  };
  if (kept->give_back(put_again)) return true;
  put_again(std::move(kept));
  return false;
}

void Completions::close() {
  if (process_ != ::getpid()) return;  // the parent's: another thread may have had the lock
  const WithoutGil released;
  std::map<std::uint64_t, std::unique_ptr<Kept>> dropped;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    dropped.swap(all_);
  }
  for (const auto& [token, kept] : dropped) drop(*kept);
}

void Completions::forget_all() { returning = 0; }

void Completions::end(std::chrono::seconds patience) {
  for (const auto& each : std::exchange(existing(), {})) {
    if (const auto one = each.lock()) one->close();
  }
  const WithoutGil released;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (returning > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace muster::python
