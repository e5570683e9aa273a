#include "waiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "errors.h"

namespace muster::python {

namespace {

thread_local const std::atomic<bool>* cancellation_of_thread = nullptr;

/// Restores what was there before, also after an exception.
class Installed {
 public:
  explicit Installed(const std::atomic<bool>& flag)
      : outer_(std::exchange(cancellation_of_thread, &flag)) {}
  ~Installed() { cancellation_of_thread = outer_; }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;

 private:
  const std::atomic<bool>* const outer_;
};

}  // namespace

py::object Cancellation::run(const py::object& call, const py::tuple& arguments) {
  const Installed installed(is_cancelled_);
  return call(*arguments);
}

bool Cancellation::is_requested() {
  return cancellation_of_thread != nullptr && *cancellation_of_thread;
}

void bind_waiting(py::module_& module) {
  py::class_<Cancellation, std::shared_ptr<Cancellation>>(module, "Cancellation")
      .def(py::init([] {
        const InCall begins;  // where the interpreter ends, it begins no call in another thread
        return std::make_shared<Cancellation>();
      }))
      .def("run", &Cancellation::run)
      .def("cancel", &Cancellation::cancel);
}

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
  if (is_ending() || Cancellation::is_requested()) return true;
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
