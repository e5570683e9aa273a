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
    {"sum", ReduceOp::sum},
    {"product", ReduceOp::product},
    {"max", ReduceOp::max},
    {"min", ReduceOp::min},
    {"average", ReduceOp::average},
    {"bit_and", ReduceOp::bit_and},
    {"bit_or", ReduceOp::bit_or},
    {"bit_xor", ReduceOp::bit_xor},
    // torch's names, which composer takes
    {"SUM", ReduceOp::sum},
    {"PRODUCT", ReduceOp::product},
    {"MAX", ReduceOp::max},
    {"MIN", ReduceOp::min},
    {"AVG", ReduceOp::average},
    {"BAND", ReduceOp::bit_and},
    {"BOR", ReduceOp::bit_or},
    {"BXOR", ReduceOp::bit_xor},
};

std::optional<ReduceOp> reduce_op_named(const std::string& name) {
  for (const auto& each : reduce_ops)
    if (name == each.name) return each.operation;
  return std::nullopt;
}

/// A number of NumPy's or torch's as one of Python's: what has `item` and no dimension.
py::object plain(py::handle value) {
  const py::object shape = py::getattr(value, "shape", py::none());
  const bool is_scalar = PyTuple_Check(shape.ptr()) != 0 && PyTuple_GET_SIZE(shape.ptr()) == 0;
  if (is_scalar && py::hasattr(value, "item")) return value.attr("item")();
  return py::reinterpret_borrow<py::object>(value);
}

/// Of a bool, an int of 64 bits or a float.
detail::Number number_of(py::handle given) {
  const py::object value = plain(given);
  if (PyBool_Check(value.ptr()) != 0) return detail::number_of(value.is(py::handle(Py_True)));
  if (PyLong_Check(value.ptr()) != 0) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) {
      PyErr_SetString(PyExc_OverflowError, "value: an int of 64 bits, and this one is larger");
      throw py::error_already_set();
    }
    return detail::number_of(static_cast<std::int64_t>(number));
  }
  if (PyFloat_Check(value.ptr()) != 0) return detail::number_of(PyFloat_AS_DOUBLE(value.ptr()));
  refuse_type(given, "value", "a bool, an int of 64 bits or a float");
}

py::object object_of_number(const detail::Number& number) {
  if (number.kind == detail::NumberKind::boolean) return py::bool_(number.bits != 0);
  if (number.kind == detail::NumberKind::floating)
    return py::float_(detail::value_of<double>(number));
  return py::int_(detail::value_of<std::int64_t>(number));
}

// A rank that refuses an argument gives a number of no type, which is a mismatch for the others.

py::object synchronize(py::handle ranks, py::handle value, py::handle root_given,
                       py::handle timeout_given) {
  StatelessProcessGroup& group = group_of(ranks);
  Refusal refusal;
  detail::Number number;
  Rank root(0);
  Duration timeout = default_timeout;
  refusal.read([&] {
    const int last = group.world_size() - 1;
    root = Rank(static_cast<int>(integer_of(root_given, "root", 0, last)));
  });
  refusal.read([&] {
    timeout = Timeout::of(timeout_given, "timeout").duration;
    number = number_of(value);
  });
  return refusal.settle([&] {
    return block([&] { return detail::broadcast_number(group, number, root, timeout); },
                 object_of_number);
  });
}

py::object reduce(py::handle ranks, py::handle value, py::handle op, py::handle timeout_given) {
  StatelessProcessGroup& group = group_of(ranks);
  Refusal refusal;
  detail::Number number;
  auto operation = static_cast<ReduceOp>(0xfe);  // none: the others are to hear of it
  Duration timeout = default_timeout;
  refusal.read([&] {
    timeout = Timeout::of(timeout_given, "timeout").duration;
    const std::string name = argument_of<std::string>(op, "op");
    number = number_of(value);
    operation = reduce_op_named(name).value_or(operation);
  });
  return refusal.settle([&] {
    return block([&] { return detail::reduce_number(group, number, operation, timeout); },
                 object_of_number);
  });
}

}  // namespace

ReduceOp reduce_op_of(const std::string& name) {
  if (const auto operation = reduce_op_named(name)) return *operation;
  refuse_choice("op", "sum, product, max, min, average, bit_and, bit_or or bit_xor", name);
}

TensorRanks tensor_ranks_of(py::handle object) {
  if (py::isinstance<RanksHandle>(object)) return py::cast<RanksHandle&>(object).object();
  return argument_of<GroupHandle>(object, "ranks").object();
}

StatelessProcessGroup& group_of(py::handle object) {
  if (py::isinstance<GroupHandle>(object)) return py::cast<GroupHandle&>(object).object();
  StatelessProcessGroup* const group = argument_of<RanksHandle>(object, "ranks").object().group();
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
