#include "net/io_thread.h"

#include <cerrno>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>

#include "base/monotonic_now.h"
#include "base/thread.h"

// Life cycle: the constructor starts the I/O thread, which runs the loop until it is stopped; or
// the caller's thread is that, and runs it when it likes; or a host's loop runs it, whose thread is
// the I/O thread for the time of a turn, and leaves it at rest. The destructor lets the handler
// thread finish its queue and stops the I/O thread. Each thread shares the ownership of what it
// runs on, so that the destructor may leave a thread behind that it cannot wait for, which is
// itself or, from the I/O thread, the handlers of the application.
//
// What an application's handler throws stops there. Anything else that reaches the loop, such as
// that memory is out, may have left work half done: everything that lives on the loop ends, tells
// whoever waits for it, and can begin anew.

MUSTER_BEGIN_NAMESPACE

namespace {

/// Returns whether nothing was thrown, which ends what lives on the loop.
template <class Work>
bool attempt(net::Loop& loop, const Work& work) {
  try {
    work();
    return true;
  } catch (const std::exception& thrown) {
    loop.fail(thrown.what());
  } catch (...) {
    loop.fail("something that is no std::exception was thrown");
  }
  return false;
}

void run(net::Loop& loop) {
  while (!attempt(loop, [&loop] { loop.run(); })) {
  }
}

constexpr int finishing_turns_max = 64;

}  // namespace

struct IoThread::Impl::Handlers {
  std::mutex mutex;
  std::condition_variable wake;
  net::TaskQueue queue;
  bool stopping = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      net::Task* const task = queue.pop();
      if (task == nullptr) return;
      lock.unlock();
      try {
        task->run();
      } catch (...) {  // who posted it has logged what it wants logged
      }
      lock.lock();
    }
  }
};

/// While it lives this thread serves, unless one does already.
class IoThread::Impl::Serving {
 public:
  Serving(Impl& impl, Handling handling) : impl_(impl) {
    const auto self = std::this_thread::get_id();
    std::thread::id nobody;
    has_begun_ = impl_.serving_.compare_exchange_strong(nobody, self);
    if (!has_begun_) return;
    impl_.caller_ = self;
    impl_.handling_ = handling;
  }
  ~Serving() {
    if (!has_begun_) return;
    if (impl_.runs_ == Runs::in_hosts_loop) {
      impl_.handling_ = Handling::at_once;
      if (impl_.is_finished_) impl_.loop_->drop_tasks();
      impl_.loop_->rest();
    }
    impl_.serving_ = std::thread::id();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  explicit operator bool() const { return has_begun_; }

 private:
  Impl& impl_;
  bool has_begun_ = false;
};

IoThread::Impl::Impl(std::string name, Runs runs)
    : name_(std::move(name)),
      runs_(runs),
      loop_(std::make_shared<net::Loop>()),
      handlers_(std::make_shared<Handlers>()) {
  if (runs_ == Runs::in_hosts_loop) loop_->rest();
  if (runs_ != Runs::on_own_thread) return;
  io_thread_ = base::start_thread(name_, [loop = loop_] { run(*loop); });
}

IoThread::Impl::~Impl() {
  std::thread handler_thread;
  {
    const std::lock_guard lock(handlers_->mutex);
    handlers_->stopping = true;
    handler_thread = std::move(handlers_->thread);
  }
  handlers_->wake.notify_one();
  const bool on_io = runs_ == Runs::on_own_thread ? on_io_thread() : is_serving();
  if (handler_thread.joinable()) {
    if (on_io || handler_thread.get_id() == std::this_thread::get_id()) {
      handler_thread.detach();
    } else {
      handler_thread.join();
    }
  }
  if (runs_ != Runs::on_own_thread) return;
  loop_->stop();
  if (on_io) {
    io_thread_.detach();
  } else {
    io_thread_.join();
  }
}

net::Loop& IoThread::Impl::loop() { return *loop_; }

void IoThread::Impl::post_handler(net::Task& task) {
  if (runs_ == Runs::in_hosts_loop) {
    return post_inline_handler(task);
  }
  const auto handlers = handlers_;  // the task may drop the last reference to this object
  const std::lock_guard lock(handlers->mutex);
  if (!handlers->thread.joinable()) {  // first, since it may fail
    handlers->thread = base::start_thread(name_, [handlers] { handlers->run(); });
  }
  handlers->queue.push(task);
  handlers->wake.notify_one();
}

void IoThread::Impl::run_inline_handler(net::Task& task) {
  const bool is_turn = runs_ == Runs::on_own_thread ? on_io_thread() : is_serving();
  if (is_turn && handling_ == Handling::at_once) return task.run();
  post_inline_handler(task);
}

void IoThread::Impl::post_inline_handler(net::Task& task) {
  if (is_finished_) return task.run();
  loop_->post(task);
}

bool IoThread::Impl::on_io_thread() const {
  const auto self = std::this_thread::get_id();
  switch (runs_) {
    case Runs::on_own_thread: return io_thread_.get_id() == self;
    case Runs::on_callers: return caller_.load() == self;
    case Runs::in_hosts_loop: return is_serving();
  }
  return false;
}

bool IoThread::Impl::would_deadlock() const {
  return on_io_thread() ||
         (runs_ == Runs::in_hosts_loop && caller_.load() == std::this_thread::get_id());
}

bool IoThread::Impl::on_handler_thread() const {
  const std::lock_guard lock(handlers_->mutex);
  return handlers_->thread.get_id() == std::this_thread::get_id();
}

bool IoThread::Impl::may_run() const {
  if (runs_ == Runs::on_own_thread || serving_.load() != std::thread::id()) return false;
  return is_finished_ || caller_.load() == std::this_thread::get_id();
}

void IoThread::Impl::run_until(const std::function<bool()>& is_over, Duration at_most) {
  const bool is_endless = at_most == Duration::max();
  const base::Instant end = base::deadline_after(base::monotonic_now(), at_most);
  const Serving serving(*this, Handling::at_once);
  while (serving && !is_over()) {
    const Duration left = is_endless ? at_most : end - base::monotonic_now();
    if (left <= Duration::zero()) return;
    attempt(*loop_, [&] { loop_->turn(left); });
  }
}

bool IoThread::Impl::run_here(const std::function<void()>& work) {
  if (!may_run()) return false;
  const Serving serving(*this, Handling::in_next_turn);
  if (!serving) return false;  // another thread was faster
  attempt(*loop_, work);
  return true;
}

int IoThread::Impl::descriptor() const {
  return runs_ == Runs::in_hosts_loop ? loop_->descriptor() : -1;
}

bool IoThread::Impl::serve_ready() {
  if (runs_ != Runs::in_hosts_loop || is_finished_) return false;
  const Serving serving(*this, Handling::at_once);
  if (!serving) return false;
  const bool has_served = turn_now();
  if (is_finished_) serve_last_turns();
  return has_served;
}

bool IoThread::Impl::turn_now() {
  bool has_served = true;  // also what has failed
  attempt(*loop_, [&] { has_served = loop_->turn_now(); });
  return has_served;
}

void IoThread::Impl::serve_last_turns() {
  for (int turn = 0; turn < finishing_turns_max && turn_now(); ++turn) {
  }
}

void IoThread::Impl::finish() {
  if (runs_ != Runs::in_hosts_loop) return;
  const Serving serving(*this, Handling::at_once);
  if (serving) serve_last_turns();
  is_finished_ = true;  // whoever serves drops what is left
}

bool IoThread::Impl::forked() const { return owner_.is_forked(); }

void IoThread::Impl::close_inherited_sockets() { loop_->sockets().close_all(); }

std::shared_ptr<IoThread> IoThread::Impl::create(std::string_view name, Runs runs) {
  const std::string given(name.empty() ? "muster" : name);
  try {
    return std::shared_ptr<IoThread>(new IoThread(std::make_unique<Impl>(given, runs)));
  } catch (const std::system_error&) {
    return nullptr;
  }
}

std::shared_ptr<IoThread> IoThread::create(std::string_view name) {
  return Impl::create(name, Impl::Runs::on_own_thread);
}

std::shared_ptr<IoThread> IoThread::create_for_caller(std::string_view name) {
  return Impl::create(name, Impl::Runs::on_callers);
}

std::shared_ptr<IoThread> IoThread::create_for_host_loop() {
  return Impl::create({}, Impl::Runs::in_hosts_loop);
}

int IoThread::descriptor() const noexcept { return impl_->forked() ? -1 : impl_->descriptor(); }

bool IoThread::serve_ready() { return !impl_->forked() && impl_->serve_ready(); }

void IoThread::finish() {
  if (!impl_->forked()) impl_->finish();
}

bool IoThread::run_until(const std::function<bool()>& is_over) {
  if (impl_->forked() || !impl_->may_run()) return false;
  impl_->run_until(is_over, Duration::max());
  return true;
}

void IoThread::wake() noexcept {
  const int errno_before = errno;
  impl_->loop().wake();
  errno = errno_before;
}

IoThread::IoThread(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

IoThread::~IoThread() {
  if (impl_ == nullptr || !impl_->forked()) return;
  impl_->close_inherited_sockets();
  base::keep_forever(std::shared_ptr<Impl>(std::move(impl_)));
}

MUSTER_END_NAMESPACE
