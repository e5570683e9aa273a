#pragma once

#include <chrono>
#include <functional>

#include <pybind11/pybind11.h>

#include "muster/error.h"
#include "muster/log.h"

// Functions of Python's that Muster calls by itself: for events, and for lines of its log. They run
// one after the other on a thread of their own, so that none of Muster's threads waits for the GIL.
//
// Python gives a weak reference to an object with such a function. So an event keeps nothing alive,
// and a cycle of a group and its handler is one that Python's collector sees.

namespace muster::python {

namespace py = pybind11;

/// Calls `method` of what `reference` refers to, with the exception; None: an empty function.
std::function<void(const Error& error)> error_callback(const py::object& reference,
                                                       const char* method);

/// The same of `log`, with a level of Python's logging and a line.
Logger logger_of(const py::object& reference);

/// Around a fork, by the thread that forks; the end also in the child.
void begin_fork();
void end_fork();

/// The interpreter ends: no function starts to run any more. Waits for the one that runs, at most
/// for so long.
void end_callbacks(std::chrono::seconds patience);

}  // namespace muster::python
