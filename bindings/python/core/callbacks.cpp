#include "callbacks.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "errors.h"
#include "gil.h"
#include "without_signals.h"

namespace muster::python {

namespace {

/// Held while a thread comes to the interpreter or leaves it. A fork in that moment would leave the
/// child with a lock of the interpreter that nobody releases (CPython 3.11), so it waits for this.
/// Taken without the GIL, which whoever holds it may wait for. Never destroyed, as `runner`.
std::mutex& coming_and_going() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

/// The thread is known to the interpreter all the time, and has the GIL only when it takes it.
class Attached {
 public:
  Attached() {
    const std::lock_guard lock(coming_and_going());
    held_.emplace();
    released_.emplace();
  }
  ~Attached() {
    const std::lock_guard lock(coming_and_going());
    released_.reset();
    held_.reset();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  std::optional<WithGil> held_;
  std::optional<WithoutGil> released_;
};

/// Runs work one after the other, each with the GIL.
class Runner {
 public:
  /// From any thread, without the GIL. Dropped when it has ended.
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    works_.push_back(std::move(work));
    if (!thread_.joinable()) {
      const WithoutSignals blocked;
      thread_ = std::thread([this] { run(); });
    }
    wake_.notify_all();
  }

  /// Without the GIL. A handler that runs longer than `patience` is left behind: it ends with the
  /// process.
  void end(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    is_over_ = true;
    wake_.notify_all();
    if (!thread_.joinable()) return;
    const bool is_done = wake_.wait_for(lock, patience, [this] { return is_done_; });
    lock.unlock();
    if (is_done) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  void run() {
    run_works();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    wake_.notify_all();
  }

  void run_works() {
    const Attached attached;
    while (const auto work = next()) {
      const WithGil held;
      try {
        work();
      } catch (py::error_already_set& thrown) {
        if (is_ending() && thrown.matches(PyExc_SystemExit)) return;
        thrown.discard_as_unraisable("a handler of Muster's events");
      }
    }
  }

  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return is_over_ || !works_.empty(); });
    if (is_over_) return {};
    auto work = std::move(works_.front());
    works_.pop_front();
    return work;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> works_;
  bool is_over_ = false;
  bool is_done_ = false;  // the thread has ended
  std::thread thread_;
};

/// That of this process: a forked child has none of the parent's threads. Never destroyed, because
/// Muster's threads may end after it.
Runner& runner() {
  static std::mutex mutex;
  static Runner* current = nullptr;
  static pid_t owner = 0;
  const std::lock_guard lock(mutex);
  if (current == nullptr || owner != ::getpid()) {
    current = new Runner;
    owner = ::getpid();
  }
  return *current;
}

/// A reference that any thread may drop, without the GIL.
std::shared_ptr<PyObject> held(const py::object& object) {
  return {py::object(object).release().ptr(),
          [](PyObject* reference) { runner().post([reference] { Py_DECREF(reference); }); }};
}

/// What a weak reference refers to; None: nothing any more.
py::object referred(const std::shared_ptr<PyObject>& reference) {
  return py::reinterpret_borrow<py::object>(reference.get())();
}

/// The end of the interpreter may leave it behind in there.
void call_handler(const py::object& object, const char* method, const py::tuple& arguments) {
  call_python(object.attr(method), arguments);
}

}  // namespace

std::function<void(const Error& error)> error_callback(const py::object& reference,
                                                       const char* method) {
  if (reference.is_none()) return {};
  return [reference = held(reference), method](const Error& error) {
    runner().post([reference, method, error] {
      const py::object object = referred(reference);
      if (!object.is_none()) call_handler(object, method, py::make_tuple(exception_of(error)));
    });
  };
}

Logger logger_of(const py::object& reference) {
  if (reference.is_none()) return {};
  return [reference = held(reference)](LogLevel level, std::string_view line) {
    const int number = 10 * (static_cast<int>(level) + 1);  // as logging has them
    runner().post([reference, number, line = std::string(line)] {
      const py::object object = referred(reference);
      if (!object.is_none()) call_handler(object, "log", py::make_tuple(number, text_of(line)));
    });
  };
}

void begin_fork() {
  const WithoutGil released;
  coming_and_going().lock();
}

void end_fork() { coming_and_going().unlock(); }

void end_callbacks(std::chrono::seconds patience) {
  const WithoutGil released;
  runner().end(patience);
}

}  // namespace muster::python
