#include "nccl/doubles/communicator.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "nccl/doubles/counts.h"
#include "nccl/doubles/exported.h"
#include "nccl/doubles/nccl_control.h"

// The life of a communicator: made by a group, whose thread (group.cpp) brings it to ready, or to
// an error, or nowhere. Operations are issued with a ticket each and take turns on their streams.
// abort() stops what waits, waits until no thread or operation runs, and closes the sockets; of one
// that was never ready it leaks what NCCL leaks. destroy() does the same to one at rest.

namespace nccl_double {
namespace {

constexpr std::size_t leaked_descriptor_count = 3;

std::atomic<int>& leaks() {
  static std::atomic<int> number = [] {
    const char* const value = std::getenv("NCCL_DOUBLE_LEAKS");
    return value == nullptr ? 1 : std::atoi(value);
  }();
  return number;
}

struct Registry {
  std::mutex mutex;
  std::map<const void*, CommunicatorPointer> all;
};

Registry& registry() {
  static auto* const one = new Registry;  // threads may outlive the statics
  return *one;
}

}  // namespace

Communicator::Communicator(const Place& its_place) : place(its_place), peers(its_place.magic) {
  lanes_out.resize(static_cast<std::size_t>(place.rank_count));
  lanes_in.resize(static_cast<std::size_t>(place.rank_count));
  ++counts().communicators;
}

// As init.cc: ncclCommGetAsyncError.
int Communicator::result() const {
  const int result = result_;
  return result == success ? network_result_.load() : result;
}

void Communicator::set_result(int result) {
  const std::lock_guard lock(mutex_);
  result_ = result;
  changed_.notify_all();
}

// As init.cc: ncclCommEnsureReady.
int Communicator::refusal() const {
  if (is_gone_) return invalid_argument;
  const int result = this->result();
  if (result != in_progress) return result;
  set_last_error("Attempt to use communicator before the previous operation returned ncclSuccess");
  return invalid_argument;
}

int Communicator::refusal_of_revoked() const {
  if (is_revoked_) set_last_error("communicator was revoked");
  return is_revoked_ || is_finalized_ ? invalid_usage : success;
}

void Communicator::begin_work(std::function<void()> abort_work) {
  const std::lock_guard lock(mutex_);
  if (!place.is_blocking) result_ = in_progress;
  ++background_;
  abort_work_ = std::move(abort_work);
}

void Communicator::end_work(int result) {
  const std::lock_guard lock(mutex_);
  if (!place.is_blocking) result_ = result;
  --background_;
  abort_work_ = nullptr;
  changed_.notify_all();
}

void Communicator::stop_all() {
  const std::lock_guard lock(mutex_);
  stop.set();
  stop_operations.set();
  changed_.notify_all();
}

int Communicator::issue(const std::function<int(std::uint64_t)>& launch) {
  const std::lock_guard lock(mutex_);
  const int result = launch(issued_);
  if (result == success) ++issued_;
  return result;
}

void Communicator::take_turn(std::uint64_t ticket, const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return served_ == ticket || stop_operations.is_set(); });
  if (!stop_operations.is_set()) {
    ++running_;
    lock.unlock();
    work();
    lock.lock();
    --running_;
  }
  ++served_;
  changed_.notify_all();
}

bool Communicator::wait_for_operations() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return served_ == issued_ || stop.is_set(); });
  return !stop.is_set();
}

void Communicator::wait_for_running_operations() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == 0; });
}

void Communicator::revoke() {
  const std::lock_guard lock(mutex_);
  is_revoked_ = true;
  network_result_ = success;
  stop_operations.set();
  changed_.notify_all();
}

void Communicator::fail_operation(int result) {
  const std::lock_guard lock(mutex_);
  if (!stop_operations.is_set()) network_result_ = result;
}

void Communicator::stick() const {
  const Counted counted(counts().stuck);
  stop_operations.wait();
}

bool Communicator::abort() {
  if (!take_end()) return false;
  stop_all();
  std::function<void()> abort_work;
  {
    const std::lock_guard lock(mutex_);
    abort_work = abort_work_;
  }
  if (abort_work) abort_work();
  wait_for_background();
  wait_for_running_operations();
  if (!is_ready_ && leaks() != 0) leak();
  close();
  return true;
}

bool Communicator::destroy() {
  wait_for_operations();
  if (!take_end()) return false;
  wait_for_background();
  close();
  return true;
}

bool Communicator::take_end() { return !is_gone_.exchange(true); }

void Communicator::wait_for_background() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return background_ == 0; });
}

void Communicator::close() {
  peers.close();
  for (Socket* const socket : {&next, &previous, &data_next, &data_previous, &for_root.socket}) {
    socket->close();
  }
  lanes_out.clear();
  lanes_in.clear();
  stop.close();
  stop_operations.close();
  --counts().communicators;
}

// Peers that still try to reach it connect to a socket at which nobody accepts.
void Communicator::leak() {
  static auto* const leaked = new std::vector<Socket>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::size_t count = 0;
  const int listener = leaked->emplace_back(peers.take_listener()).descriptor();
  if (for_root.socket.is_open()) {
    leaked->push_back(std::move(for_root.socket));
    ++count;
  }
  while (++count < leaked_descriptor_count) leaked->emplace_back(::dup(listener));
  counts().leaked_descriptors += static_cast<long>(leaked_descriptor_count);
  ++counts().threads;
  ++counts().leaked_threads;
  std::thread([] {
    for (;;) ::pause();
  }).detach();
}

CommunicatorPointer make_communicator(const Place& place) {
  auto communicator = std::make_shared<Communicator>(place);
  const std::lock_guard lock(registry().mutex);
  registry().all[communicator.get()] = communicator;
  return communicator;
}

CommunicatorPointer find_communicator(const void* handle) {
  if (handle == nullptr) return nullptr;
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().all.find(handle);
  if (found != registry().all.end()) return found->second;
  std::fprintf(stderr, "The double of NCCL was given %p, which is no communicator.\n", handle);
  std::abort();
}

}  // namespace nccl_double

DOUBLE_EXPORT void nccl_double_set_leaks(int number) { nccl_double::leaks() = number; }
