#include "waiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "errors.h"

namespace muster::python {

/// Linux gives the thread with which a process begins, also a forked one, the process's id.
bool Waiting::is_in_main_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid)) == ::getpid();
}

Waiting::Waiting() : is_main_thread_(is_in_main_thread()) {}

Waiting::~Waiting() {
  Py_XDECREF(raised_type_);
  Py_XDECREF(raised_);
  Py_XDECREF(raised_trace_);
}

bool Waiting::look(void* self) noexcept {
  if (is_ending()) return true;
  auto& waiting = *static_cast<Waiting*>(self);
  return waiting.is_main_thread_ && waiting.run_signal_handlers();
}

bool Waiting::run_signal_handlers() noexcept {
  if (is_interrupted()) return true;  // what was raised first counts
  const WithGil held;
  if (!held) return true;
  if (PyErr_CheckSignals() != 0) PyErr_Fetch(&raised_type_, &raised_, &raised_trace_);
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

}  // namespace muster::python
