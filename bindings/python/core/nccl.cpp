#include "muster/nccl.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "bind.h"
#include "calls.h"
#include "communicators.h"
#include "muster/nccl_id.h"
#include "muster/runtime_nccl.h"

namespace muster::python {

namespace {

nccl::Mode mode_of(const std::string& name) {
  if (name == "nonblocking") return nccl::Mode::nonblocking;
  if (name == "blocking") return nccl::Mode::blocking;
  refuse_choice("mode", "nonblocking or blocking", name);
}

nccl::Options nccl_options_of(const py::dict& given) {
  nccl::Options options;
  set_communicator_options(options, given);
  options.mode = mode_of(option_of<std::string>(given, "mode"));
  options.warm_up = option_of<bool>(given, "warm_up");
  options.ctas_max = option_of<int>(given, "ctas_max");
  options.nccl_library = option_of<std::string>(given, "nccl_library");
  options.cuda_library = option_of<std::string>(given, "cuda_library");
  return options;
}

py::object handle_of(Communicator&& communicator) {
  return py::cast(CommunicatorHandle{shared(std::move(communicator))});
}

/// One that its owner has too.
py::object handle_of_shared(std::shared_ptr<Communicator> communicator) {
  if (!communicator) return py::none();
  return py::cast(CommunicatorHandle{std::move(communicator)});
}

py::object create_nccl(const GroupHandle& group, Whole<int> device, const py::dict& given) {
  const nccl::Options options = nccl_options_of(given);
  StatelessProcessGroup& of = group.object();
  return block([&] { return nccl::create(of, device, options); }, handle_of);
}

nccl::UniqueId id_of(py::handle given) {
  if (PyUnicode_Check(given.ptr()) != 0) refuse_type(given, "id", "128 bytes");
  const Bytes bytes = Bytes::of(given, "id");
  const std::string_view view = bytes;
  nccl::UniqueId id{};
  if (view.size() != id.size()) {
    throw py::value_error("id: 128 bytes, not " + std::to_string(view.size()));
  }
  std::copy(view.begin(), view.end(), id.begin());
  return id;
}

py::object object_of_id(const nccl::UniqueId& id) { return bytes_of({id.data(), id.size()}); }

py::object unique_id(const GroupHandle& group, py::handle timeout, py::handle id,
                     const std::string& library) {
  const Duration duration = duration_of(timeout, "timeout", Duration(0));
  nccl::IdOptions options;
  options.library = library;
  if (!id.is_none()) options.id = id_of(id);
  StatelessProcessGroup& of = group.object();
  return block([&] { return nccl::unique_id(of, duration, options); }, object_of_id);
}

bool give_up(py::handle given) {
  const nccl::UniqueId id = id_of(given);
  const WithoutGil released;
  return nccl::give_up(id);
}

template <class T>
T must_be(Result<T> result) {
  if (!result.has_value()) raise(result.error());
  return *std::move(result);
}

Communicator& communicator_of(py::handle given) {
  return argument_of<CommunicatorHandle>(given, "communicator").object();
}

struct CommunicatorsHandle {
  std::shared_ptr<nccl::Communicators> all;
};

py::object create_kept(const CommunicatorsHandle& self, const GroupHandle& group, Whole<int> device,
                       const py::dict& given) {
  const nccl::Options options = nccl_options_of(given);
  StatelessProcessGroup& of = group.object();
  return block([&] { return self.all->create(of, device, options); }, handle_of_shared);
}

/// Each a communicator or an exception.
py::list create_all(const CommunicatorsHandle& self, const py::list& given) {
  std::vector<nccl::Request> requests;
  for (const py::handle each : given) {
    const auto fields = argument_of<py::tuple>(each, "requests");
    nccl::Request request;
    request.group = &argument_of<GroupHandle>(fields[0], "group").object();
    request.device = argument_of<int>(fields[1], "device");
    request.options = nccl_options_of(py::cast<py::dict>(fields[2]));
    requests.push_back(std::move(request));
  }
  Waiting waiting;
  auto made = waiting.run([&] { return self.all->create_all(requests); });
  if (waiting.is_interrupted()) waiting.raise(nullptr, py::none());
  py::list outcomes;
  for (auto& each : made)
    outcomes.append(each.has_value() ? handle_of_shared(*std::move(each))
                                     : exception_of(each.error()));
  return outcomes;
}

py::list all_of(const CommunicatorsHandle& self) {
  py::list list;
  for (auto& each : self.all->all()) list.append(handle_of_shared(std::move(each)));
  return list;
}

void bind_kept(py::module_& module) {
  using Self = CommunicatorsHandle;
  py::class_<Self>(module, "NcclCommunicators")
      .def(py::init([] { return Self{shared(nccl::Communicators())}; }))
      .def("create", named_method(&create_kept, "group", "device", "options"))
      .def("create_all", named_method(&create_all, "requests"))
      .def("all", &all_of)
      .def("find",
           [](const Self& self, py::handle group) {
             return handle_of_shared(
                 self.all->find(argument_of<GroupHandle>(group, "group").object()));
           })
      .def("drop",
           [](const Self& self, py::handle group) {
             StatelessProcessGroup& of = argument_of<GroupHandle>(group, "group").object();
             const WithoutGil released;
             self.all->drop(of);
           })
      .def("drop_ended",
           [](const Self& self) {
             const WithoutGil released;
             return self.all->drop_ended();
           })
      .def("count", [](const Self& self) { return self.all->count(); })
      .def("abort_all", [](const Self& self) {
        const WithoutGil released;
        self.all->abort_all();
      });
}

}  // namespace

CommunicatorMaker nccl_maker_of(const py::object& given) {
  return nccl_maker(given.is_none() ? nccl::Options() : nccl_options_of(py::cast<py::dict>(given)));
}

void bind_nccl(py::module_& module) {
  module.def("nccl_create", named(&create_nccl, "group", "device", "options"));
  module.def("nccl_unique_id", named(&unique_id, "group", "timeout", "id", "library"));
  module.def("nccl_give_up", named(&give_up, "id"));
  module.def("nccl_device",
             [](py::handle given) { return must_be(nccl::device(communicator_of(given))); });
  module.def("nccl_native_handle", [](py::handle given) {
    const nccl::Handle handle = must_be(nccl::native_handle(communicator_of(given)));
    return reinterpret_cast<std::uintptr_t>(handle);
  });
  module.def("nccl_release_issuer", [](py::handle given) {
    if (auto released = nccl::release_issuer(communicator_of(given)); !released)
      raise(released.error());
  });
  module.def("nccl_failed_attempts", &nccl::failed_attempts);
  module.def("nccl_forgive_attempts", &nccl::forgive_attempts);
  module.def("nccl_given_up_handles", &nccl::given_up_handles);
  bind_kept(module);
}

}  // namespace muster::python
