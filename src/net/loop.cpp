#include "net/loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/monotonic_now.h"

// A turn: wait (not at all while work is left) -> tell each watcher that is ready, once -> the
// timers that are due -> the work that was posted before. Whoever is ready and has not been told,
// because something was thrown, is ready in the next turn again: the set is level-triggered.
//
// Sleep: a thread that posts rings only if the loop says that it is asleep. The loop says so first
// and then looks for work once more, so one of the two sees the other. The wake-up descriptor is
// edge-triggered and never read; that it was rung says nothing by itself, the work is looked for.
//
// Where another loop waits for this one's epoll set, it is always as if asleep between two turns:
// `rest` does what a turn does before it sleeps, and rings where that would not have slept. Until a
// turn has looked at the set, the ring stays in it.

namespace muster::net {
namespace {

constexpr std::size_t spares_max = 64;
constexpr std::size_t spare_bytes_min = 64;
constexpr std::size_t spare_bytes_max = 16 * 1024;

UniqueFd require(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}

}  // namespace

void Mailbox::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (loop_ != nullptr) loop_->post(std::move(work));
}

void Mailbox::shut() {
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

Loop::Loop()
    : epoll_(require(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(require(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      bell_(wake_.get()),
      mailbox_(std::make_shared<Mailbox>(*this)) {
  add_own(wake_.get(), EPOLLIN | EPOLLET, &wake_);
  add_own(timers_.descriptor(), EPOLLIN, &timers_);
  sockets_.add(epoll_.get());
  spares_.reserve(spares_max);
}

/// Each may post, set timers and close others.
Loop::~Loop() {
  mailbox_->shut();
  failure_listeners_.clear();
  for (;;) {
    drop_tasks();
    if (!timers_.empty()) {
      timers_.first().cancel();
    } else if (Watcher* const watcher = first_watcher_) {
      dismiss(*watcher);
      watcher->fd_.reset();
      watcher->on_loop_end();
    } else {
      break;
    }
  }
}

// Other threads.

void Loop::post(std::function<void()> work) { post(*new FunctionTask(std::move(work))); }

void Loop::post(Task& task) noexcept {
  task.next_ = posted_.load(std::memory_order_relaxed);
  while (!posted_.compare_exchange_weak(task.next_, &task)) {
  }
  if (is_asleep_.load() && is_asleep_.exchange(false)) wake();
}

void Loop::stop() noexcept {
  is_stopped_ = true;
  wake();
}

void Loop::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
}

// Turns.

void Loop::run() {
  while (!is_stopped_) turn(Duration::max());
}

void Loop::turn(Duration wait_max) { serve(timeout_ms(wait_max)); }

bool Loop::turn_now() {
  busy_polling_.pause();
  timers_.prepare();
  const bool has_work_left = has_work();
  serve(0);
  return has_work_left || !ready_.empty() || has_run_posted_;
}

void Loop::rest() noexcept {
  timers_.prepare();
  is_asleep_.store(true);
  if (has_work() && is_asleep_.exchange(false)) wake();
}

void Loop::serve(int timeout) {
  ready_.wait(epoll_.get(), timeout);
  const base::Instant began = base::monotonic_now();
  ++turn_number_;
  is_asleep_.store(false, std::memory_order_relaxed);
  if (busy_polling_.is_active() && ready_.empty())
    ::sched_yield();  // who shares the core goes first
  run_ready();
  if (timers_.is_due()) timers_.run();
  if (bell_.has_rung()) bell_.answer();
  has_run_posted_ = !tasks_.empty() || posted_.load(std::memory_order_relaxed) != nullptr;
  run_posted();
  turn_stats_.add(base::monotonic_now() - began);
}

/// How long the set may be waited for: not at all while there is work.
int Loop::timeout_ms(Duration wait_max) {
  busy_polling_.pause();
  timers_.prepare();
  if (has_work()) return 0;
  if (busy_polling_.poll(!ready_.empty() || has_run_posted_)) return 0;
  is_asleep_.store(true);
  if (has_work()) return 0;
  if (wait_max > std::chrono::hours(1)) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait_max).count());
}

bool Loop::has_work() const {
  return timers_.is_due() || !tasks_.empty() || posted_.load() != nullptr || bell_.has_rung() ||
         is_stopped_;
}

void Loop::run_ready() {
  while (ready_.has_next()) {
    const epoll_event event = ready_.take_next();
    if (event.data.ptr == &timers_) {
      timers_.note_due();
    } else if (event.data.ptr != nullptr && event.data.ptr != &wake_) {
      static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
    }
  }
}

void Loop::take_posted() {
  Task* latest = posted_.exchange(nullptr);
  Task* oldest = nullptr;
  while (latest != nullptr) {
    Task* const older = latest->next_;
    latest->next_ = oldest;
    oldest = std::exchange(latest, older);
  }
  while (oldest != nullptr) {
    Task* const later = oldest->next_;
    tasks_.push(*oldest);
    oldest = later;
  }
}

/// Each may post.
void Loop::drop_tasks() noexcept {
  for (take_posted(); Task* const task = tasks_.pop(); take_posted()) task->drop();
}

void Loop::run_posted() {
  if (posted_.load(std::memory_order_relaxed) != nullptr) take_posted();
  if (tasks_.empty()) return;
  const Task* const last = tasks_.last();
  while (Task* const task = tasks_.pop()) {
    const bool is_last = task == last;
    task->run();
    if (is_last) return;
  }
}

// What connections share.

std::string Loop::take_spare() noexcept {
  if (spares_.empty()) return {};
  std::string spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

void Loop::give_spare(std::string spare) noexcept {
  const bool is_useful = spare.capacity() >= spare_bytes_min && spare.capacity() <= spare_bytes_max;
  if (!is_useful || spares_.size() == spares_max) return;
  spare.clear();
  spares_.push_back(std::move(spare));
}

// Watchers.

void Loop::admit(Watcher& watcher) {
  watcher.next_ = first_watcher_;
  if (first_watcher_ != nullptr) first_watcher_->previous_ = &watcher;
  first_watcher_ = &watcher;
  sockets_.add(watcher.fd());
}

int Loop::change(Watcher& watcher, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watcher;
  const int operation = watcher.watched_ == 0 ? EPOLL_CTL_ADD
                        : events == 0         ? EPOLL_CTL_DEL
                                              : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), operation, watcher.fd(), &event) == 0) return 0;
  const int failed = errno;
  if (operation == EPOLL_CTL_MOD) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watcher.fd(), nullptr);
  }
  return failed;
}

/// Also from the events that this turn has yet to tell.
void Loop::dismiss(Watcher& watcher) noexcept {
  if (watcher.watched_ != 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watcher.fd(), nullptr);
    ready_.forget(&watcher);
  }
  sockets_.remove(watcher.fd());
  if (watcher.next_ != nullptr) watcher.next_->previous_ = watcher.previous_;
  (watcher.previous_ != nullptr ? watcher.previous_->next_ : first_watcher_) = watcher.next_;
  watcher.previous_ = watcher.next_ = nullptr;
}

void Loop::add_own(int fd, std::uint32_t events, void* mark) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = mark;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace muster::net
