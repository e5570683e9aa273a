#pragma once

#include <atomic>
#include <chrono>

#include <pybind11/pybind11.h>

#include "gil.h"
#include "muster/error.h"
#include "muster/interruptible.h"

// A blocking call, while it waits:
//
// - It does not hold the GIL.
// - In the main thread, the handlers of signals run meanwhile. If one raises, as that of Ctrl-C
//   does, the call is cancelled; what was raised is raised again, and tells what became of the
//   call.
// - In the thread of an executor, another thread cancels the call (Cancellation).
// - When the interpreter ends, the calls of all other threads are cancelled, as gil.h tells.

namespace muster::python {

namespace py = pybind11;

/// Lets one thread cancel the blocking calls of another one.
class Cancellation {
 public:
  /// Calls a function of Python's. While it runs, `cancel` cancels the blocking calls of this
  /// thread.
  py::object run(const py::object& call, const py::tuple& arguments);
  void cancel() { is_cancelled_ = true; }

  /// Whether the calls of this thread are cancelled.
  static bool is_requested();

 private:
  std::atomic<bool> is_cancelled_ = false;
};

void bind_waiting(py::module_& module);

class Waiting {
 public:
  static constexpr Duration look_period{std::chrono::milliseconds(20)};

  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Once; with the GIL, which it gives back meanwhile.
  template <class Call>
  auto run(const Call& call) {
    const WithoutGil released;
    const Interruptible interruptible(&Waiting::look, this, look_period);
    return call();
  }

  /// Whether this thread is the one that runs the handlers of signals.
  static bool is_in_main_thread();

  bool is_interrupted() const { return raised_type_ != nullptr; }

  /// Raises what the handler of a signal has raised.
  ///
  /// error  of the call; null: it has given `value`
  [[noreturn]] void raise(const Error* error, py::object value);

 private:
  static bool look(void* self) noexcept;
  bool run_signal_handlers() noexcept;

  const InCall in_call_;
  const bool is_main_thread_;
  PyObject* raised_type_ = nullptr;
  PyObject* raised_ = nullptr;
  PyObject* raised_trace_ = nullptr;
};

}  // namespace muster::python
