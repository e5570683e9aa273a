#pragma once

#include <pybind11/pybind11.h>

#include "muster/error.h"

// Errors as exceptions of muster/errors.py.

namespace muster::python {

namespace py = pybind11;

/// The exception of an error, with all of its fields. Needs the GIL.
py::object exception_of(const Error& error);

/// Throws it. When the interpreter ends, other threads end silently (`leave_if_ending`).
[[noreturn]] void raise(const Error& error);
/// Of an argument: invalid_argument, before anything was done.
[[noreturn]] void refuse(std::string_view argument, std::string_view reason);
/// Of an argument that has other choices: ValueError.
[[noreturn]] void refuse_choice(std::string_view argument, std::string_view choices,
                                std::string_view given);
/// Raises Closed: a call on an object that was closed in this process.
///
/// group  its name, of a group
[[noreturn]] void raise_closed(std::string_view reason, std::string_view group = {});

py::object process_of(const ProcessInfo& process);
py::list ranks_of(const std::vector<RankRange>& ranges);
/// Seconds, or None.
py::object seconds_of(const std::optional<Duration>& duration);
inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
/// Text that another process gave: what is no UTF-8 in it is replaced.
py::str text_of(std::string_view text);

}  // namespace muster::python
