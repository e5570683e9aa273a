#include <optional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

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
  const py::dict fields = dict_of(given, "formed");
  for (const char* const name : {"rank", "world_size"})
    if (!fields.contains(name)) refuse("formed", std::string("it has no ") + name);
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

Environment environment_of(py::handle given, const std::string& argument) {
  if (given.is_none()) return Environment::of_process();
  Environment::Variables variables;
  for (const auto& [name, value] : dict_of(given, argument))
    variables[string_of(name, argument)] = string_of(value, argument);
  return Environment(std::move(variables));
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
      .def(py::init(named(&environment_of, "variables", "argument")))
      .def("find",
           [](const Environment& self, py::handle number) -> py::object {
             const auto found = must(self.find(job_number_of(string_of(number, "number"))));
             if (!found) return py::none();
             return found_number(*found);
           })
      .def("number",
           [](const Environment& self, py::handle number, py::handle rule,
              const py::object& formed) {
             const JobNumber wanted = job_number_of(string_of(number, "number"));
             const EnvironmentRule by = environment_rule_of(string_of(rule, "rule"));
             const auto group = formed_of(formed);
             return found_number(must(self.number(wanted, by, group ? &*group : nullptr)));
           })
      .def("is_single_process",
           [](const Environment& self) { return must(self.is_single_process()); })
      .def("validate",
           [](const Environment& self, py::handle how) {
             const Validation wanted = validation_of(string_of(how, "how"));
             if (auto valid = self.validate(wanted); !valid) raise(valid.error());
           })
      .def("host_name", [](const Environment& self) { return text_of(self.host_name()); })
      .def("variable",
           [](const Environment& self, py::handle name) -> py::object {
             const auto value = self.variable(string_of(name, "name"));
             if (!value) return py::none();
             return text_of(*value);
           })
      .def("__eq__", [](const Environment& self, py::handle other) {
        return py::isinstance<Environment>(other) && self == py::cast<Environment&>(other);
      });
}

}  // namespace muster::python
