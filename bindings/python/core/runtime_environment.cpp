#include <map>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "bind.h"
#include "errors.h"
#include "muster/environment.h"

namespace muster::python {

namespace {

constexpr JobNumber job_numbers[] = {
    JobNumber::world_size,   JobNumber::rank,          JobNumber::local_world_size,
    JobNumber::local_rank,   JobNumber::node_count,    JobNumber::node_rank,
    JobNumber::replica_rank, JobNumber::fs_local_rank,
};

template <class T>
T must(Result<T> result) {
  if (!result.has_value()) raise(result.error());
  return *std::move(result);
}

std::optional<int> optional_number(const py::dict& given, const char* name) {
  if (!given.contains(name) || given[name].is_none()) return std::nullopt;
  return option_of<int>(given, name);
}

std::optional<FormedGroup> formed_of(const py::object& given) {
  if (given.is_none()) return std::nullopt;
  const auto fields = py::cast<py::dict>(given);
  FormedGroup formed;
  formed.rank = option_of<int>(fields, "rank");
  formed.world_size = option_of<int>(fields, "world_size");
  formed.local_world_size = optional_number(fields, "local_world_size");
  formed.local_rank = optional_number(fields, "local_rank");
  formed.node_count = optional_number(fields, "node_count");
  formed.node_rank = optional_number(fields, "node_rank");
  return formed;
}

Validation validation_of(const std::string& name) {
  if (name == "complete") return Validation::complete;
  if (name == "contradictions") return Validation::contradictions;
  refuse_choice("how", "complete or contradictions", name);
}

Environment environment_of(const py::object& variables) {
  if (variables.is_none()) return Environment::of_process();
  return Environment(
      Environment::Variables(py::cast<std::map<std::string, std::string, std::less<>>>(variables)));
}

}  // namespace

JobNumber job_number_of(const std::string& name) {
  for (const JobNumber number : job_numbers)
    if (name_of(number) == name) return number;
  refuse_choice("number",
                "world_size, rank, local_world_size, local_rank, node_count, node_rank, "
                "replica_rank or fs_local_rank",
                name);
}

EnvironmentRule environment_rule_of(const std::string& name) {
  if (name == "environment_first") return EnvironmentRule::environment_first;
  if (name == "group_first") return EnvironmentRule::group_first;
  refuse_choice("rule", "environment_first or group_first", name);
}

py::object found_number(const FoundNumber& found) {
  return py::make_tuple(found.value, text_of(found.source), found.is_computed);
}

void bind_environment(py::module_& module) {
  py::class_<Environment>(module, "Environment")
      .def(py::init(&environment_of))
      .def("find",
           [](const Environment& self, const std::string& number) -> py::object {
             const auto found = must(self.find(job_number_of(number)));
             if (!found) return py::none();
             return found_number(*found);
           })
      .def("number",
           [](const Environment& self, const std::string& number, const std::string& rule,
              const py::object& formed) {
             const auto group = formed_of(formed);
             return found_number(must(self.number(job_number_of(number), environment_rule_of(rule),
                                                  group ? &*group : nullptr)));
           })
      .def("is_single_process",
           [](const Environment& self) { return must(self.is_single_process()); })
      .def("validate",
           [](const Environment& self, const std::string& how) {
             if (auto valid = self.validate(validation_of(how)); !valid) raise(valid.error());
           })
      .def("host_name", [](const Environment& self) { return text_of(self.host_name()); })
      .def("variable",
           [](const Environment& self, const std::string& name) -> py::object {
             const auto value = self.variable(name);
             if (!value) return py::none();
             return text_of(*value);
           })
      .def("__eq__",
           [](const Environment& self, const Environment& other) { return self == other; });
}

}  // namespace muster::python
