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
#include "muster/environment.h"
#include "muster/mesh.h"
#include "muster/runtime.h"
#include "runtime.h"

namespace muster::python {

namespace {

struct RuntimeHandle {
  std::shared_ptr<Runtime> runtime;
  /// Of what the world has lent.
  std::shared_ptr<bool> is_over = std::make_shared<bool>(false);

  template <class T>
  Lent<T> lend(T& part) const {
    return Lent<T>(std::shared_ptr<T>(runtime, &part), is_over);
  }
};

RuntimeHandle make_runtime(const Environment& environment) {
  return {shared_of(std::make_unique<Runtime>(environment))};
}

RuntimeOptions runtime_options_of(const py::dict& given) {
  RuntimeOptions options;
  options.group = hosted_group_options_of(option_of<py::dict>(given, "group"),
                                          option_of<py::dict>(given, "of_store"));
  options.store = option_of<std::string>(given, "store");
  options.host = option_of<std::string>(given, "host");
  options.host_at_master_address = option_of<bool>(given, "host_at_master_address");
  options.communicators = option_of<std::string>(given, "communicators");
  if (!given["device"].is_none()) options.device = option_of<int>(given, "device");
  options.makers = makers_of(given["nccl"], given["gloo"]);
  return options;
}

py::object init(const RuntimeHandle& self, const py::dict& given) {
  const RuntimeOptions options = runtime_options_of(given);
  return block([&] { return self.runtime->init(options); });
}

/// What was lent is over in any case.
py::object shut_down(RuntimeHandle& self, Timeout timeout) {
  const Duration patience =
      timeout.duration == default_timeout ? Duration(std::chrono::seconds(60)) : timeout.duration;
  if (self.runtime->is_initialized()) {
    *self.is_over = true;
    self.is_over = std::make_shared<bool>(false);
  }
  return block([&] { return self.runtime->shutdown(patience); });
}

void abort(const RuntimeHandle& self, Whole<int> code, const Told& reason) {
  const WithoutGil released;
  self.runtime->abort(code, reason.text);
}

py::object place_of(const JobPlace& place) {
  return py::make_tuple(place.rank, place.local_rank, place.local_world_size, place.node_rank,
                        process_of(place.process));
}

py::list places_of(const std::vector<JobPlace>& places) {
  py::list list;
  for (const JobPlace& place : places) list.append(place_of(place));
  return list;
}

SubgroupOptions subgroup_options_of(const std::string& name, const std::string& communicators,
                                    Timeout timeout) {
  SubgroupOptions options;
  options.name = name;
  options.communicators = communicators;
  options.timeout = timeout.duration;
  return options;
}

py::object subgroup(const RuntimeHandle& self, py::handle ranks_given, const std::string& name,
                    const std::string& communicators, Timeout timeout) {
  const std::vector<int> ranks = integers_of<int>(ranks_given, "ranks");
  const SubgroupOptions options = subgroup_options_of(name, communicators, timeout);
  return block([&] { return self.runtime->subgroup(ranks, options); }, value_of_ranks);
}

py::object subgroup_along(const RuntimeHandle& self, const Mesh& mesh, const std::string& dimension,
                          const std::string& name, const std::string& communicators,
                          Timeout timeout) {
  const SubgroupOptions options = subgroup_options_of(name, communicators, timeout);
  return block([&] { return self.runtime->subgroup(mesh, dimension, options); }, value_of_ranks);
}

py::object number(const RuntimeHandle& self, const std::string& name, const std::string& rule) {
  auto found = self.runtime->number(job_number_of(name), environment_rule_of(rule));
  if (!found) raise(found.error());
  return found_number(*found);
}

py::object group_or_none(const RanksHandle& self) {
  StatelessProcessGroup* const group = self.ranks->group();
  if (group == nullptr) return py::none();
  return py::cast(GroupHandle{self.ranks.part(*group)});
}

py::object communicator_or_none(const RanksHandle& self, const std::string& device) {
  if (device != "cpu" && device != "cuda") refuse_choice("device", "cpu or cuda", device);
  Communicator* const communicator = self.ranks->communicator(device);
  if (communicator == nullptr) return py::none();
  return py::cast(CommunicatorHandle{self.ranks.part(*communicator)});
}

/// The group is moved there: its handle of Python's has to be given that one.
py::object ranks_of_group(const GroupHandle& group, const Environment& environment,
                          Timeout timeout) {
  StatelessProcessGroup& given = group.object();
  return block([&] { return RankGroup::of(std::move(given), environment, timeout.duration); },
               value_of_ranks);
}

void bind_ranks(py::module_& module) {
  py::class_<RanksHandle>(module, "RankGroup")
      .def("group", &group_or_none)
      .def("world_ranks", [](const RanksHandle& self) { return self.ranks->world_ranks(); })
      .def("places", [](const RanksHandle& self) { return places_of(self.ranks->places()); })
      .def("rank_of",
           [](const RanksHandle& self, py::handle rank) {
             return self.ranks->rank_of(argument_of<int>(rank, "world_rank"));
           })
      .def("communicator", named_method(&communicator_or_none, "device"));
  module.def("ranks_of_group", named(&ranks_of_group, "group", "environment", "timeout"));
  module.def("group_of", [](const RanksHandle& ranks) {
    return GroupHandle{ranks.ranks.part(group_of(py::cast(ranks)))};
  });
}

void bind_mesh(py::module_& module) {
  py::class_<Mesh>(module, "Mesh")
      .def(py::init([](py::handle given, py::handle ranks) {
        std::vector<MeshDimension> dimensions;
        for (const auto& [name, size] : dict_of(given, "dimensions"))
          dimensions.push_back(
              {string_of(name, "dimensions"), argument_of<int>(size, "dimensions")});
        auto mesh = Mesh::create(std::move(dimensions), integers_of<int>(ranks, "ranks"));
        if (!mesh) raise(mesh.error());
        return *std::move(mesh);
      }))
      .def("dimensions",
           [](const Mesh& self) {
             py::list list;
             for (const MeshDimension& dimension : self.dimensions())
               list.append(py::make_tuple(dimension.name, dimension.size));
             return list;
           })
      .def("ranks", [](const Mesh& self) { return self.ranks(); })
      .def("coordinates",
           [](const Mesh& self, py::handle rank) {
             return self.coordinates(argument_of<int>(rank, "rank"));
           })
      .def("ranks_along", [](const Mesh& self, py::handle dimension, py::handle rank) {
        auto ranks =
            self.ranks_along(string_of(dimension, "dimension"), argument_of<int>(rank, "rank"));
        if (!ranks) raise(ranks.error());
        return *std::move(ranks);
      });
}

}  // namespace

py::object value_of_ranks(RankGroup&& ranks) {
  return py::cast(RanksHandle{shared(std::move(ranks))});
}

void bind_runtime(py::module_& module) {
  bind_ranks(module);
  bind_mesh(module);
  using Self = RuntimeHandle;
  py::class_<Self>(module, "Runtime")
      .def(py::init(&make_runtime))
      .def("init", &init)
      .def("shutdown", named_method(&shut_down, "timeout"))
      .def("abort", named_method(&abort, "code", "reason"))
      .def("subgroup", named_method(&subgroup, "ranks", "name", "communicators", "timeout"))
      .def("subgroup_along",
           named_method(&subgroup_along, "ranks", "dimension", "name", "communicators", "timeout"))
      .def("number", named_method(&number, "number", "rule"))
      .def("is_initialized", [](const Self& self) { return self.runtime->is_initialized(); })
      .def("environment", [](const Self& self) { return self.runtime->environment(); })
      .def("rank", [](const Self& self) { return self.runtime->rank(); })
      .def("world_size", [](const Self& self) { return self.runtime->world_size(); })
      .def("local_rank", [](const Self& self) { return self.runtime->local_rank(); })
      .def("local_world_size", [](const Self& self) { return self.runtime->local_world_size(); })
      .def("node_rank", [](const Self& self) { return self.runtime->node_rank(); })
      .def("node_count", [](const Self& self) { return self.runtime->node_count(); })
      .def("places", [](const Self& self) { return places_of(self.runtime->places()); })
      .def("world", [](const Self& self) { return RanksHandle{self.lend(self.runtime->world())}; })
      .def("store", [](const Self& self) -> py::object {
        Store* const store = self.runtime->store();
        if (store == nullptr) return py::none();
        return py::cast(StoreHandle{self.lend(*store)});
      });
}

}  // namespace muster::python
