#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "muster/environment.h"
#include "muster/process_group_options.h"
#include "muster/store_options.h"

// The module muster._core, and its parts muster._core, in the order in which they are bound.

namespace muster::python {

namespace py = pybind11;

/// errors  TypeError, ValueError: of an option that is none, or has no such value
StoreOptions store_options_of(const py::dict& options);
HostedGroupOptions hosted_group_options_of(const py::dict& group, const py::dict& store);

JobNumber job_number_of(const std::string& name);
EnvironmentRule environment_rule_of(const std::string& name);
/// A tuple: value, source, is_computed.
py::object found_number(const FoundNumber& found);

/// All of it.
void bind(py::module_& module);

void bind_store(py::module_& module);
void bind_inspect(py::module_& module);
void bind_group(py::module_& module);
void bind_server(py::module_& module);
void bind_environment(py::module_& module);
void bind_tensors(py::module_& module);
void bind_communicators(py::module_& module);
void bind_runtime(py::module_& module);
void bind_turns(py::module_& module);
void bind_runtime_values(py::module_& module);
void bind_tensor_calls(py::module_& module);
void bind_shared(py::module_& module);
void bind_files(py::module_& module);

}  // namespace muster::python
