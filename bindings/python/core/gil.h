#pragma once

#include <chrono>

#include <pybind11/pybind11.h>

// The GIL. Nothing else in this folder releases or takes it.
//
// A thread that takes the GIL while the interpreter ends never gets it: CPython 3.11 to 3.13 ends
// the thread there, by unwinding its stack, which aborts the process at the first destructor that
// waits for the GIL; 3.14 lets it wait for ever. These classes let it wait for ever in all
// versions, and no destructor of theirs waits for what will not come. How the end goes, by atexit:
//
//   running   calls begin, release the GIL, and take it back
//   ending    no call begins; those that wait are cancelled, and waited for (begin_ending)
//   over      no thread releases or takes the GIL here; one that comes back waits (finish_ending)

namespace muster::python {

namespace py = pybind11;

/// A call of Python's, from its begin until its outcome is an object or an exception.
class InCall {
 public:
  /// With the GIL.
  ///
  /// errors  the exception muster.Closed, or SystemExit as `leave_if_ending` says: the interpreter
  ///         ends; nothing was done, and no code of Python's has run, in which this thread could
  ///         end
  InCall();
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

/// Releases the GIL, and takes it back. When all is over it keeps the GIL.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;  // null: it has not released it
};

/// Takes the GIL, unless this thread has it, and gives it back.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

  /// Whether it has the GIL; not when all is over.
  explicit operator bool() const { return has_it_; }

 private:
  bool has_it_;
  PyGILState_STATE state_{};
};

/// Whether this thread has the GIL.
bool has_gil();

/// Calls a function of Python's in the midst of a call of Muster's. If Python ends the thread
/// there, it waits for ever.
///
/// errors  what the function has raised
py::object call_python(const py::object& function, const py::tuple& arguments);

/// Whether the interpreter ends.
bool is_ending();
/// When the interpreter ends, a thread whose call cannot go on ends silently, as daemon threads of
/// Python do: by SystemExit. In the thread that ends the interpreter this does nothing.
void leave_if_ending();
/// Begins the end: cancels what waits, and waits for it, at most for so long.
void begin_ending(std::chrono::seconds patience);
/// Finishes it, and waits for threads that are about to take the GIL, at most for so long.
void finish_ending(std::chrono::seconds patience);

/// In a forked child, which has none of its parent's other threads.
void forget_other_threads();

}  // namespace muster::python
