#include "communicators.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "arguments.h"
#include "aside.h"
#include "bind.h"
#include "callbacks.h"
#include "calls.h"
#include "operations.h"

namespace muster::python {

namespace {

/// One for each call; under the GIL.
std::vector<Communicator*>& in_progress() {
  static std::vector<Communicator*> communicators;
  return communicators;
}

/// Makes a call of a communicator. Gloo looks for no signals while it waits: in the main thread it
/// waits on a thread of its own. An interruption ends the communicator, since no operation of it
/// can be taken back.
template <class Call>
py::object call(Communicator& communicator, const Call& made) {
  const CallInProgress in_progress(&communicator);
  if (communicator.kind() == "gloo" && Waiting::is_in_main_thread())
    return block([&] { return made_aside(made, [&] { communicator.abort(); }); });
  return block(made);
}

py::object run(const CommunicatorHandle& self, const Operation& operation) {
  Communicator& communicator = self.object();
  return call(communicator, [&] { return operation.run(communicator); });
}

py::object run_grouped(const CommunicatorHandle& self, const py::list& recorded, Timeout timeout) {
  std::vector<const Operation*> operations;
  for (const py::handle each : recorded)
    operations.push_back(&argument_of<Operation>(each, "operations"));
  Communicator& communicator = self.object();
  const auto all = [&]() -> Result<void> {
    for (const Operation* const operation : operations) {
      if (auto begun = operation->run(communicator); !begun) return begun;
    }
    return {};
  };
  return call(communicator, [&] { return communicator.grouped(all, timeout.duration); });
}

std::optional<Error> error_of(const CommunicatorHandle& self) {
  const Communicator& communicator = self.object();
  const WithoutGil released;
  return communicator.error();
}

py::object error_or_none(const CommunicatorHandle& self) {
  const auto error = error_of(self);
  return error ? exception_of(*error) : py::none();
}

/// Whether its program has ended it: by `close` or `abort`, or with its group or its runtime.
bool is_closed(const CommunicatorHandle& self) {
  if (self.communicator.is_over()) return true;
  const auto error = error_of(self);
  return error && (error->code == ErrorCode::closed || error->code == ErrorCode::aborted);
}

py::object attach(const CommunicatorHandle& self, const GroupHandle& group, Timeout timeout) {
  Communicator& communicator = self.object();
  StatelessProcessGroup& other = group.object();
  return block([&] { return communicator.attach(other, timeout.duration); });
}

py::object close(const CommunicatorHandle& self, Timeout timeout) {
  if (is_closed(self)) return py::none();
  Communicator& communicator = self.object();
  return call(communicator, [&] { return communicator.close(timeout.duration); });
}

void abort_all(py::handle given) {
  std::vector<Communicator*> all;
  for (const py::handle each :
       iterator_of(given, "communicators", "several communicators, such as a list")) {
    const auto& one = argument_of<CommunicatorHandle>(each, "communicators");
    if (!one.communicator.is_over()) all.push_back(&one.object());
  }
  const WithoutGil released;
  Communicator::abort_all(all);
}

OnLoss on_loss_of(const std::string& name) {
  if (name == "abort") return OnLoss::abort;
  if (name == "notify") return OnLoss::notify;
  refuse_choice("on_loss", "abort or notify", name);
}

}  // namespace

CallInProgress::CallInProgress(Communicator* communicator) : communicator_(communicator) {
  if (communicator_ != nullptr) in_progress().push_back(communicator_);
}

CallInProgress::~CallInProgress() {
  if (communicator_ == nullptr) return;
  std::vector<Communicator*>& all = in_progress();
  all.erase(std::find(all.begin(), all.end(), communicator_));
}

void abort_calls_in_progress() {
  for (Communicator* const communicator : in_progress()) communicator->abort();
}

void set_communicator_options(CommunicatorOptions& options, const py::dict& given) {
  options.timeout = duration_option_of(given, "timeout", options.timeout);
  options.on_loss = on_loss_of(option_of<std::string>(given, "on_loss"));
  options.abort_timeout = duration_option_of(given, "abort_timeout", options.abort_timeout);
  options.on_end = error_callback(given["events"], "ended");
}

void bind_communicators(py::module_& module) {
  py::class_<Operation>(module, "Operation")
      .def(py::init(named(&Operation::of, "communicator", "name", "tensor", "out", "options")));
  py::class_<CommunicatorHandle>(module, "Communicator")
      .def("run", named_method(&run, "operation"))
      .def("run_grouped", named_method(&run_grouped, "operations", "timeout"))
      .def("attach", named_method(&attach, "group", "timeout"))
      .def("close", named_method(&close, "timeout"))
      .def("abort",
           [](const CommunicatorHandle& self) {
             if (self.communicator.is_over()) return;
             Communicator& communicator = self.object();
             const WithoutGil released;
             communicator.abort();
           })
      .def("error", &error_or_none)
      .def("is_closed", &is_closed)
      .def("kind", [](const CommunicatorHandle& self) { return std::string(self.object().kind()); })
      .def("rank", [](const CommunicatorHandle& self) { return self.object().rank(); })
      .def("world_size", [](const CommunicatorHandle& self) { return self.object().world_size(); })
      .def("group", [](const CommunicatorHandle& self) { return text_of(self.object().group()); })
      .def("epoch", [](const CommunicatorHandle& self) { return self.object().epoch(); })
      .def("creation_times", [](const CommunicatorHandle& self) {
        const CreationTimes times = self.object().creation_times();
        return py::make_tuple(seconds_of(times.total), seconds_of(times.library));
      });
  module.def("abort_all", &abort_all);
  bind_nccl(module);
  bind_gloo(module);
}

}  // namespace muster::python
