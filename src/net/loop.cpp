#include "net/loop.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
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
// The clock is set again only before a sleep, and only to ring earlier: most timers are moved on or
// cancelled before they are due.
//
// Where another loop waits for this one's epoll set, it is always as if asleep between two turns:
// `rest` does what a turn does before it sleeps, and rings where that would not have slept. Until a
// turn has looked at the set, the ring stays in it.

namespace muster::net {
namespace {

constexpr Duration long_turn_min = std::chrono::milliseconds(100);
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
      clock_(
          require(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")),
      bell_(wake_.get()),
      mailbox_(std::make_shared<Mailbox>(*this)) {
  add_own(wake_.get(), EPOLLIN | EPOLLET, &wake_);
  add_own(clock_.get(), EPOLLIN, &clock_);
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
      timers_.begin()->second->cancel();
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
  is_polling_ = false;
  prepare_clock();
  const bool has_work_left = has_work();
  serve(0);
  return has_work_left || event_count_ > 0 || has_run_posted_;
}

void Loop::rest() noexcept {
  prepare_clock();
  is_asleep_.store(true);
  if (has_work() && is_asleep_.exchange(false)) wake();
}

void Loop::serve(int timeout) {
  const int count =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout);
  const base::Instant began = base::monotonic_now();
  ++turn_number_;
  is_asleep_.store(false, std::memory_order_relaxed);
  next_event_ = 0;
  event_count_ = static_cast<std::size_t>(std::max(count, 0));
  if (is_polling_ && event_count_ == 0) ::sched_yield();  // who shares the core goes first
  run_ready();
  if (is_clock_due_) run_timers();
  if (bell_.has_rung()) bell_.answer();
  has_run_posted_ = !tasks_.empty() || posted_.load(std::memory_order_relaxed) != nullptr;
  run_posted();
  end_turn(began);
}

void Loop::end_turn(base::Instant began) {
  const Duration took = base::monotonic_now() - began;
  longest_turn_ = std::max(took, longest_turn_);
  turn_times_.add(took);
  if (took > long_turn_min) ++long_turns_count_;
}

/// How long the set may be waited for: not at all while there is work.
int Loop::timeout_ms(Duration wait_max) {
  is_polling_ = false;
  prepare_clock();
  if (has_work()) return 0;
  is_polling_ = shall_poll();
  if (is_polling_) return 0;
  is_asleep_.store(true);
  if (has_work()) return 0;
  if (wait_max > std::chrono::hours(1)) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait_max).count());
}

bool Loop::has_work() const {
  return is_clock_due_ || !tasks_.empty() || posted_.load() != nullptr || bell_.has_rung() ||
         is_stopped_;
}

/// Whether an event was seen so short a time ago that the next one is worth looking for.
bool Loop::shall_poll() {
  if (busy_polls_.empty()) return false;
  const base::Instant now = base::monotonic_now();
  if (event_count_ > 0 || has_run_posted_) polls_until_ = now + *busy_polls_.rbegin();
  return now < polls_until_;
}

void Loop::begin_busy_poll(Duration wish) { busy_polls_.insert(wish); }

void Loop::end_busy_poll(Duration wish) noexcept {
  const auto found = busy_polls_.find(wish);
  if (found != busy_polls_.end()) busy_polls_.erase(found);
}

void Loop::run_ready() {
  while (next_event_ < event_count_) {
    const epoll_event event = events_[next_event_++];
    if (event.data.ptr == &clock_) {
      is_clock_due_ = true;
    } else if (event.data.ptr != nullptr && event.data.ptr != &wake_) {
      static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
    }
  }
}

void Loop::prepare_clock() {
  if (!timers_.empty() && timers_.begin()->first < clock_set_for_) await_timers();
}

/// The first timer is due in the next turn, or when the clock says so.
void Loop::await_timers() {
  is_clock_due_ = !timers_.empty() && timers_.begin()->first <= earliest_timer_;
  if (!is_clock_due_) set_clock();
}

/// Sets the clock to the first timer; to none is to stop it.
void Loop::set_clock() {
  clock_set_for_ = timers_.empty() ? base::far_future : timers_.begin()->first;
  itimerspec when{};
  if (clock_set_for_ < base::far_future) {
    const auto since_boot = std::max(clock_set_for_.time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count();
  }
  ::timerfd_settime(clock_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Loop::run_timers() {
  const base::Instant now = base::monotonic_now();
  earliest_timer_ = now + base::Instant::duration(1);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Timer& timer = *timers_.begin()->second;
    const auto work = std::exchange(timer.work_, nullptr);
    timer.cancel();
    work();
  }
  await_timers();
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
    for (std::size_t place = next_event_; place < event_count_; ++place) {
      if (events_[place].data.ptr == &watcher) events_[place].data.ptr = nullptr;
    }
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

// Failures.

std::uint64_t Loop::on_failure(std::function<void(std::string_view why)> end) {
  failure_listeners_.emplace(++last_number_, std::move(end));
  return last_number_;
}

void Loop::fail(std::string_view why) noexcept {
  for (const auto& [number, end] : failure_listeners_) {
    insist([&run = end, why] { run(why); });
  }
}

}  // namespace muster::net
