#include <chrono>
#include <memory>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "callbacks.h"
#include "communicators.h"
#include "completions.h"
#include "errors.h"
#include "gil.h"
#include "muster/communicator.h"
#include "muster/detail/secret_text.h"
#include "muster/process_group.h"
#include "muster/server.h"
#include "muster/shared.h"
#include "muster/store.h"
#include "muster/tensor.h"
#include "muster/turns.h"
#include "waiting.h"

// The module muster._core: Muster's calls with the least that Python needs around them. The package
// muster gives them names, defaults and types; nobody else imports this.

namespace muster::python {

using namespace py::literals;

namespace {

void refuse_subinterpreters() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return;
  throw py::import_error(
      "muster works in the main interpreter alone: its threads would not know in which "
      "subinterpreter a handler runs. Import it there, or in a process of its own");
}

void bind_completions(py::module_& module) {
  py::class_<Completions, std::shared_ptr<Completions>>(module, "Completions")
      .def(py::init(&Completions::create))
      .def("descriptor", &Completions::descriptor)
      .def("put",
           [](Completions& self, std::uint64_t token, bool is_value, const py::object& outcome) {
             self.put(token, std::make_unique<KeptObject>(is_value, outcome));
           })
      .def("look", &Completions::look)
      .def("has", &Completions::has)
      .def("take", &Completions::take)
      .def("give_back", &Completions::give_back)
      .def("close", &Completions::close);
}

/// Before the interpreter ends, while all of it is there.
void end() {
  constexpr std::chrono::seconds patience{5};
  abort_calls_in_progress();
  begin_ending(patience);
  Completions::end(patience);
  end_callbacks(patience);
  finish_ending(patience);
}

/// The defaults of C++ in seconds, for the signatures of Python: so they are written once.
py::object defaults() {
  const ServerOptions server;
  const StoreOptions store;
  const GroupOptions group;
  const CommunicatorOptions communicator;
  const TurnOptions turn;
  const auto make = py::module_::import("types").attr("SimpleNamespace");
  return make("heartbeat"_a = seconds_of(server.heartbeat),
              "session_timeout"_a = seconds_of(server.session_timeout),
              "grace"_a = seconds_of(server.grace),
              "tcpstore_idle_lifetime"_a = seconds_of(server.tcpstore_idle_lifetime),
              "timeout"_a = seconds_of(store.timeout), "busy_poll"_a = seconds_of(store.busy_poll),
              "group_timeout"_a = seconds_of(group.timeout),
              "data_expiration"_a = seconds_of(group.data_expiration),
              "communicator_timeout"_a = seconds_of(communicator.timeout),
              "abort_timeout"_a = seconds_of(communicator.abort_timeout),
              "tensor_timeout"_a = seconds_of(TensorOptions().timeout),
              "silence_max"_a = seconds_of(turn.silence_max), "limit"_a = seconds_of(turn.limit),
              "arrival_max"_a = seconds_of(turn.arrival_max),
              "body_timeout"_a = seconds_of(GatherOptions().body_timeout));
}

}  // namespace

void bind(py::module_& module) {
  // Not in the module's own beginning, which runs in the first interpreter alone.
  module.attr("version") = MUSTER_VERSION;
  module.attr("DEFAULTS") = defaults();
  module.def("refuse_subinterpreters", &refuse_subinterpreters);
  module.def("complaint_of_secret", &muster::detail::complaint_of_secret);
  bind_completions(module);
  bind_waiting(module);
  bind_store(module);
  bind_inspect(module);
  bind_group(module);
  bind_server(module);
  bind_environment(module);
  bind_tensors(module);
  bind_communicators(module);
  bind_runtime(module);
  bind_turns(module);
  bind_runtime_values(module);
  bind_tensor_calls(module);
  bind_shared(module);
  bind_files(module);
  py::module_::import("atexit").attr("register")(py::cpp_function(&end));
  py::module_::import("os").attr("register_at_fork")(
      py::arg("before") = py::cpp_function(&begin_fork),
      py::arg("after_in_parent") = py::cpp_function(&end_fork),
      py::arg("after_in_child") = py::cpp_function([] {
        forget_other_threads();
        Completions::forget_all();
        end_fork();
      }));
}

}  // namespace muster::python

PYBIND11_MODULE(_core, module) { muster::python::bind(module); }
