#include "muster/gloo.h"

#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "bind.h"
#include "calls.h"
#include "communicators.h"
#include "muster/runtime_gloo.h"

// Of the library muster-gloo, where it is built.

namespace muster::python {

namespace {

gloo::Options gloo_options_of(const py::dict& given) {
  gloo::Options options;
  set_communicator_options(options, given);
  options.interface = option_of<std::string>(given, "interface");
  options.address = option_of<std::string>(given, "address");
  return options;
}

py::object create_gloo(const GroupHandle& group, const py::dict& given) {
  const gloo::Options options = gloo_options_of(given);
  StatelessProcessGroup& of = group.object();
  return block([&] { return gloo::create(of, options); },
               [](Communicator&& communicator) {
                 return py::cast(CommunicatorHandle{shared(std::move(communicator))});
               });
}

}  // namespace

std::vector<CommunicatorMaker> makers_of(const py::object& nccl, const py::object& gloo) {
  const gloo::Options options =
      gloo.is_none() ? gloo::Options() : gloo_options_of(py::cast<py::dict>(gloo));
  return {nccl_maker_of(nccl), gloo_maker(options)};
}

void bind_gloo(py::module_& module) {
  module.def("gloo_create", named(&create_gloo, "group", "options"));
}

}  // namespace muster::python
