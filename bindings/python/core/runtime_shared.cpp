#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "bind.h"
#include "calls.h"
#include "muster/shared.h"
#include "runtime.h"
#include "tensors.h"

// What ranks share. A gathering is begun and ended here by its two parts, so that the tensors which
// Python has of it can keep its memory: those that outlive the scope do no harm.

namespace muster::python {

namespace {

/// A state that Python gives, as long as a call needs it: a tuple of bytes and a dict.
struct GivenState {
  Bytes config;
  std::vector<Tensor> kept;
  std::vector<NamedTensorView> tensors;

  SharedStateView view() const { return {config, tensors}; }
};

GivenState state_of(const py::tuple& given) {
  GivenState state;
  state.config = Bytes::of(given[0], "config");
  for (const auto& [key, value] : dict_of(given[1], "tensors")) {
    const std::string name = tensor_name_of(key);
    state.kept.push_back(
        tensor_of_argument(value, "tensors['" + name + "']", Use::read, Layout::any, nullptr));
    state.tensors.push_back({name, state.kept.back().view()});
  }
  return state;
}

/// A tuple of bytes and a dict.
py::object object_of_state(SharedState state) {
  py::dict tensors;
  for (NamedTensor& each : state.tensors)
    tensors[text_of(each.name)] = object_of(std::move(each.tensor));
  return py::make_tuple(bytes_of(state.config), std::move(tensors));
}

struct WorkspaceHandle {
  std::shared_ptr<SharedWorkspace> workspace;
};

WorkspaceHandle make_workspace(py::handle given, Whole<int> rank) {
  std::optional<std::string> folder;
  if (!given.is_none()) folder = string_of(given, "folder");
  return {std::make_shared<SharedWorkspace>(folder, rank)};
}

py::object write(const WorkspaceHandle& self, Whole<std::uint64_t> generation,
                 const py::tuple& given) {
  const GivenState state = state_of(given);
  const SharedStateView view = state.view();
  return block([&] { return self.workspace->write(generation, view); });
}

py::object read(const WorkspaceHandle& self, Whole<int> rank, Whole<std::uint64_t> generation_min,
                py::handle generation_max, py::handle timeout) {
  SharedReadOptions options;
  options.generation_min = generation_min;
  if (!generation_max.is_none())
    options.generation_max = argument_of<std::uint64_t>(generation_max, "generation_max");
  options.timeout = duration_of(timeout, "timeout", options.timeout);
  return block([&] { return self.workspace->read(rank, options); }, object_of_state);
}

GatherOptions gather_options_of(const py::dict& given) {
  GatherOptions options;
  options.ranks = integers_of<int>(given["group_ranks"], "group_ranks");
  options.folder = option_of<std::string>(given, "folder");
  options.equal_tensors = option_of<bool>(given, "equal_tensors");
  options.timeout = duration_option_of(given, "timeout", options.timeout);
  options.body_timeout = duration_option_of(given, "body_timeout", options.body_timeout);
  return options;
}

/// A gathering, with what this rank has given to it.
struct Kept {
  RanksHandle ranks;
  GivenState own;
  Tensor tensor;
  std::optional<detail::Gathering> gathering;
};

/// It may be ended by any thread, with or without the GIL.
std::shared_ptr<Kept> make_kept(const RanksHandle& ranks) {
  std::shared_ptr<Kept> kept(new Kept, [](Kept* old) {
    old->gathering.reset();
    if (const WithGil held; held) delete old;  // else what it has of Python's goes with that
  });
  kept->ranks = ranks;
  return kept;
}

class GatheringHandle {
 public:
  explicit GatheringHandle(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}

  py::list tensors() const {
    py::list list;
    for (const TensorView& view : kept_->gathering->tensors()) list.append(object_of(view, kept_));
    return list;
  }

  py::list states() const {
    py::list list;
    for (const std::optional<SharedStateView>& state : kept_->gathering->states()) {
      if (!state) {
        list.append(py::none());
        continue;
      }
      py::dict named;
      for (const NamedTensorView& each : state->tensors)
        named[text_of(each.name)] = object_of(each.tensor, kept_);
      list.append(py::make_tuple(bytes_of(state->config), std::move(named)));
    }
    return list;
  }

  /// failure  what the body has raised, as text
  py::object end(const std::optional<std::string>& failure) const {
    detail::TurnOutcome own;
    own.failure = failure;
    return block([&] { return kept_->gathering->end(own); });
  }

 private:
  std::shared_ptr<Kept> kept_;
};

template <class Open>
GatheringHandle open(const std::shared_ptr<Kept>& kept, const Open& open_gathering) {
  std::optional<detail::Gathering>& place = kept->gathering;
  block([&]() -> Result<void> {
    auto opened = open_gathering();
    if (!opened) return std::move(opened).error();
    place.emplace(*std::move(opened));
    return {};
  });
  return GatheringHandle(kept);
}

GatheringHandle gather_tensors(const RanksHandle& ranks, py::handle given,
                               const py::dict& options_given) {
  Refusal refusal;
  GatherOptions options;
  const auto kept = make_kept(ranks);
  refusal.read([&] {
    options = gather_options_of(options_given);
    kept->tensor = tensor_of_argument(given, "tensor", Use::read, Layout::any, nullptr);
  });
  RankGroup& group = ranks.object();
  options.refusal = refusal.reason();
  return refusal.settle([&] {
    return open(kept,
                [&] { return detail::Gathering::of_tensors(group, kept->tensor.view(), options); });
  });
}

GatheringHandle gather_states(const RanksHandle& ranks, const py::object& given,
                              const py::dict& options_given) {
  Refusal refusal;
  GatherOptions options;
  const auto kept = make_kept(ranks);
  std::optional<SharedStateView> state;
  refusal.read([&] {
    options = gather_options_of(options_given);
    if (given.is_none()) return;
    kept->own = state_of(argument_of<py::tuple>(given, "state"));
    state = kept->own.view();
  });
  RankGroup& group = ranks.object();
  options.refusal = refusal.reason();
  return refusal.settle([&] {
    return open(kept, [&] { return detail::Gathering::of_states(group, state, options); });
  });
}

}  // namespace

void bind_shared(py::module_& module) {
  py::class_<WorkspaceHandle>(module, "SharedWorkspace")
      .def(py::init(named(&make_workspace, "folder", "rank")))
      .def("is_initialized",
           [](const WorkspaceHandle& self) { return self.workspace->is_initialized(); })
      .def("write", named_method(&write, "generation", "state"))
      .def("read", named_method(&read, "rank", "generation_min", "generation_max", "timeout"))
      .def("remove",
           [](const WorkspaceHandle& self) {
             return block([&] { return self.workspace->remove(); });
           })
      .def("path_of", [](const WorkspaceHandle& self, py::handle rank) {
        return text_of(self.workspace->path_of(argument_of<int>(rank, "rank")));
      });
  py::class_<GatheringHandle>(module, "Gathering")
      .def("tensors", &GatheringHandle::tensors)
      .def("states", &GatheringHandle::states)
      .def("end", &GatheringHandle::end);
  module.def("gather_tensors", named(&gather_tensors, "ranks", "tensor", "options"));
  module.def("gather_states", named(&gather_states, "ranks", "state", "options"));
}

}  // namespace muster::python
