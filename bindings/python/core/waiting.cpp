#include "waiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "errors.h"

namespace muster::python {

namespace {

std::atomic<bool> is_ending = false;
int waiting_count = 0;  // under the GIL

}  // namespace

/// Linux gives the thread with which a process begins, also a forked one, the process's id.
bool Waiting::is_in_main_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid)) == ::getpid();
}

Waiting::Waiting() : is_main_thread_(is_in_main_thread()) { ++waiting_count; }

Waiting::~Waiting() {
  --waiting_count;
  Py_XDECREF(raised_type_);
  Py_XDECREF(raised_);
  Py_XDECREF(raised_trace_);
}

bool Waiting::look(void* self) noexcept {
  if (is_ending.load(std::memory_order_relaxed)) return true;
  auto& waiting = *static_cast<Waiting*>(self);
  return waiting.is_main_thread_ && waiting.run_signal_handlers();
}

bool Waiting::run_signal_handlers() noexcept {
  if (is_interrupted()) return true;  // what was raised first counts
  const PyGILState_STATE state = PyGILState_Ensure();
  if (PyErr_CheckSignals() != 0) PyErr_Fetch(&raised_type_, &raised_, &raised_trace_);
  PyGILState_Release(state);
  return is_interrupted();
}

void Waiting::raise(const Error* error, py::object value) {
  PyErr_NormalizeException(&raised_type_, &raised_, &raised_trace_);
  const py::object raised = py::reinterpret_borrow<py::object>(raised_);
  if (raised_trace_ != nullptr) PyException_SetTraceback(raised_, raised_trace_);
  const py::object told =
      py::module_::import("muster.errors")
          .attr("_interrupted")(raised,
                                error == nullptr ? py::object(py::none()) : exception_of(*error),
                                value ? value : py::object(py::none()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told.ptr())), told.ptr());
  throw py::error_already_set();
}

bool is_ending_soon() { return is_ending.load(std::memory_order_relaxed); }

void end_waiting() {
  is_ending = true;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (waiting_count > 0 && std::chrono::steady_clock::now() < until) {
    const py::gil_scoped_release released;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace muster::python
