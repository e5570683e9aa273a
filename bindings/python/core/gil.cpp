#include "gil.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace muster::python {

namespace {

std::atomic<bool> ending = false;
std::thread::id ending_thread;     // set before `ending`
PyObject* closed_class = nullptr;  // of the exception; never released

int calls_count = 0;  // under the GIL
thread_local int own_calls_count = 0;

/// How many threads are about to take the GIL; with `over` no further one does.
std::atomic<unsigned> taking = 0;
constexpr unsigned over = 1U << 31U;

bool is_over() { return (taking.load() & over) != 0; }

/// Whether a thread may take the GIL. If so, `taken` follows.
bool may_take() {
  if ((taking.fetch_add(1) & over) == 0) return true;
  taking.fetch_sub(1);
  return false;
}

void taken() { taking.fetch_sub(1); }

/// Until the process ends, which may be at any moment.
[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

void pass_gil_on() {
  PyThreadState* const thread = PyEval_SaveThread();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(thread);
}

}  // namespace

InCall::InCall() {
  if (is_ending()) {
    leave_if_ending();
    PyErr_SetString(closed_class, "the interpreter ends: no call begins any more");
    throw py::error_already_set();
  }
  ++calls_count;
  ++own_calls_count;
}

InCall::~InCall() {
  --calls_count;
  --own_calls_count;
}

WithoutGil::WithoutGil() : thread_(is_over() ? nullptr : PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  if (thread_ == nullptr) return;
  if (!may_take()) wait_for_ever();
  PyEval_RestoreThread(thread_);
  taken();
}

WithGil::WithGil() : has_it_(has_gil()) {
  if (has_it_) {
    state_ = PyGILState_Ensure();
    return;
  }
  has_it_ = may_take();
  if (!has_it_) return;
  state_ = PyGILState_Ensure();
  taken();
}

WithGil::~WithGil() {
  if (has_it_) PyGILState_Release(state_);
}

bool has_gil() {
  if (Py_IsInitialized() == 0) return false;
  // Where there are subinterpreters, PyGILState_Check() is 1 in every thread.
  PyThreadState* const own = PyGILState_GetThisThreadState();
  return own != nullptr && own == py::detail::get_thread_state_unchecked();
}

py::object call_python(const py::object& function, const py::tuple& arguments) {
  PyObject* given = nullptr;
  try {
    given = PyObject_CallObject(function.ptr(), arguments.ptr());
  } catch (abi::__forced_unwind&) {
    wait_for_ever();  // and unwinds nothing that needs the GIL
  }
  if (given == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(given);
}

bool is_ending() { return ending.load(); }

void leave_if_ending() {
  if (!is_ending() || ending_thread == std::this_thread::get_id()) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw py::error_already_set();
}

void begin_ending(std::chrono::seconds patience) {
  // Not there if the import of the package has failed.
  const py::object errors = py::module_::import("sys").attr("modules").attr("get")("muster.errors");
  closed_class = errors.is_none() ? PyExc_RuntimeError
                                  : py::object(errors.attr("_InterpreterEnds")).release().ptr();
  ending_thread = std::this_thread::get_id();
  ending = true;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (calls_count > 0 && std::chrono::steady_clock::now() < until) pass_gil_on();
}

void finish_ending(std::chrono::seconds patience) {
  taking.fetch_or(over);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (taking.load() != over && std::chrono::steady_clock::now() < until) pass_gil_on();
}

void forget_other_threads() {
  calls_count = own_calls_count;
  taking.fetch_and(over);
}

}  // namespace muster::python
