#include "json/inspect.h"

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "bind.h"
#include "calls.h"
#include "values.h"

// What a server tells of itself, as text in JSON.

namespace muster::python {
namespace {

py::object inspect(const StoreHandle& handle, Whole<int> subject, const std::string& name,
                   Timeout timeout) {
  Store& store = handle.object();
  return block(
      [&] {
        return json::inspect(store, static_cast<json::Subject>(subject.value), name,
                             timeout.duration);
      },
      [](const json::Json& document) { return py::object(py::str(json::line_of(document))); });
}

}  // namespace

void bind_inspect(py::module_& module) {
  module.def("inspect", named(&inspect, "store", "subject", "name", "timeout"));
}

}  // namespace muster::python
