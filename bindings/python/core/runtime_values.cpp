#include <cstdint>
#include <optional>
#include <string>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "bind.h"
#include "calls.h"
#include "errors.h"
#include "muster/values.h"
#include "runtime.h"

namespace muster::python {

namespace {

constexpr struct {
  const char* name;
  ReduceOp operation;
} reduce_ops[] = {
    {"sum", ReduceOp::sum},       {"product", ReduceOp::product}, {"max", ReduceOp::max},
    {"min", ReduceOp::min},       {"average", ReduceOp::average}, {"bit_and", ReduceOp::bit_and},
    {"bit_or", ReduceOp::bit_or}, {"bit_xor", ReduceOp::bit_xor},
};

std::optional<ReduceOp> reduce_op_named(const std::string& name) {
  for (const auto& each : reduce_ops)
    if (name == each.name) return each.operation;
  return std::nullopt;
}

/// Calls `call` with a bool, an integer of 64 bits or a double: what Python's bool, int and float
/// are.
template <class Call>
py::object of_its_type(py::handle value, const Call& call) {
  if (PyBool_Check(value.ptr()) != 0) return call(value.is(py::handle(Py_True)));
  if (PyLong_Check(value.ptr()) != 0) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return call(static_cast<std::int64_t>(number));
  }
  if (PyFloat_Check(value.ptr()) != 0) return call(PyFloat_AS_DOUBLE(value.ptr()));
  throw py::type_error("value: a bool, an int of 64 bits or a float; not " +
                       std::string(Py_TYPE(value.ptr())->tp_name));
}

template <class T>
py::object number_object(T number) {
  return py::cast(number);
}

py::object synchronize(py::handle ranks, py::handle value, RankChoice root, Timeout timeout) {
  StatelessProcessGroup& group = group_of(ranks);
  return of_its_type(value, [&](auto number) {
    return block([&] { return synchronize_value(group, number, root.rank, timeout.duration); },
                 number_object<decltype(number)>);
  });
}

py::object reduce(py::handle ranks, py::handle value, const std::string& op, Timeout timeout) {
  StatelessProcessGroup& group = group_of(ranks);
  // The others are to hear of one that does not exist.
  const ReduceOp operation = reduce_op_named(op).value_or(static_cast<ReduceOp>(0xfe));
  return of_its_type(value, [&](auto number) {
    return block([&] { return all_reduce_value(group, number, operation, timeout.duration); },
                 number_object<decltype(number)>);
  });
}

}  // namespace

ReduceOp reduce_op_of(const std::string& name) {
  if (const auto operation = reduce_op_named(name)) return *operation;
  throw py::value_error("op: sum, product, max, min, average, bit_and, bit_or or bit_xor; not " +
                        name);
}

TensorRanks tensor_ranks_of(py::handle object) {
  if (py::isinstance<RanksHandle>(object)) return py::cast<RanksHandle&>(object).object();
  return py::cast<GroupHandle&>(object).object();
}

StatelessProcessGroup& group_of(py::handle object) {
  if (py::isinstance<GroupHandle>(object)) return py::cast<GroupHandle&>(object).object();
  StatelessProcessGroup* const group = py::cast<RanksHandle&>(object).object().group();
  if (group != nullptr) return *group;
  Error error;
  error.code = ErrorCode::not_initialized;
  error.happened = Happened::no;
  error.decided_by = "client";
  error.detail = "this group is of no ranks: Runtime.init comes first";
  raise(error);
}

void bind_runtime_values(py::module_& module) {
  module.def("synchronize_value", &synchronize);
  module.def("all_reduce_value", &reduce);
}

}  // namespace muster::python
