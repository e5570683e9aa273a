#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "aside.h"
#include "bind.h"
#include "calls.h"
#include "communicators.h"
#include "muster/tensor.h"
#include "runtime.h"
#include "tensors.h"

namespace muster::python {

namespace {

TensorWay way_of(const std::string& name) {
  for (const TensorWay way : {TensorWay::automatic, TensorWay::store, TensorWay::shared_memory,
                              TensorWay::gloo, TensorWay::nccl})
    if (name_of(way) == name) return way;
  refuse_choice("way", "automatic, store, shared_memory, gloo or nccl", name);
}

/// A call that gives nothing.
constexpr auto nothing = [](auto&&...) -> py::object { return py::none(); };

/// One call on tensors: its options, and a function of Python's that gives memory.
class TensorCall {
 public:
  TensorCall(py::handle ranks, const py::dict& given) : ranks_(tensor_ranks_of(ranks)) {
    if (py::isinstance<RanksHandle>(ranks)) rank_group_ = &py::cast<RanksHandle&>(ranks).object();
    refusal_.read([&] { read_options(given); });
  }

  /// Reads an argument. What is refused is an error on all ranks.
  template <class Read>
  void read(const Read& read) {
    refusal_.read(read);
  }

  const TensorRanks& ranks() const { return ranks_; }
  const StateDictOptions& options() const { return options_; }

  Tensor argument(py::handle object, const std::string& name, Use use) {
    Tensor tensor;
    read([&] {
      tensor = tensor_of_argument(object, name, use, Layout::any, options_.stream);
      is_in_host_memory_ = is_in_host_memory_ && tensor.view().device.is_host();
    });
    return tensor;
  }

  /// Makes a collective call.
  template <class Call, class Convert>
  py::object make(const Call& call, const Convert& convert) {
    options_.refusal = refusal_.reason();
    return refusal_.settle([&] { return make_alone(call, convert); });
  }

  /// Makes a call of which no other rank hears.
  template <class Call, class Convert>
  py::object make_alone(const Call& call, const Convert& convert) {
    if (options_.refusal.empty()) refusal_.raise_if_there();
    Communicator* const gloo = gloo_of_ranks();
    const CallInProgress in_progress(gloo);
    if (gloo == nullptr || !allocate_.is_none() || !Waiting::is_in_main_thread())
      return block_with_work(call, convert, [this] { raise_again(); });
    // Gloo looks for no signals, so this thread does.
    return block([&] { return made_aside(call, [gloo] { gloo->abort(); }); }, convert);
  }

 private:
  void read_options(const py::dict& given) {
    options_.way = way_of(option_of<std::string>(given, "way"));
    options_.store_bytes_max = option_of<std::uint64_t>(given, "store_bytes_max");
    options_.stream = stream_of(given["stream"]);
    options_.tag = Tag(option_of<std::uint64_t>(given, "tag"));
    options_.timeout = duration_option_of(given, "timeout", options_.timeout);
    options_.bucket_bytes = option_of<std::uint64_t>(given, "bucket_bytes");
    allocate_ = given["allocate"];
    if (allocate_.is_none()) return;
    if (PyCallable_Check(allocate_.ptr()) == 0) refuse_type(allocate_, "allocate", "a function");
    options_.allocate = [this](Device device, Dtype dtype, const std::vector<std::int64_t>& shape) {
      return allocate(device, dtype, shape);
    };
  }

  Communicator* gloo_of_ranks() const {
    if (rank_group_ == nullptr || !is_in_host_memory_) return nullptr;
    Communicator* const found = rank_group_->communicator("cpu");
    return found != nullptr && found->kind() == "gloo" ? found : nullptr;
  }

  Result<Tensor> allocate(Device device, Dtype dtype, const std::vector<std::int64_t>& shape) {
    const WithGil held;
    if (!held) throw Raised("the interpreter ends");
    try {
      const py::object given = call_python(
          allocate_, py::make_tuple(to_string(device), to_string(dtype), shape_of(shape)));
      return tensor_of_argument(given, "what allocate gives", Use::write, Layout::any,
                                options_.stream);
    } catch (const py::error_already_set& raised) {
      raised_ = raised;
      throw Raised(text_of_raised(raised));
    }
  }

  void raise_again() {
    if (!raised_) return;
    const py::error_already_set raised = *std::move(raised_);
    raised_.reset();
    throw raised;
  }

  const TensorRanks ranks_;
  RankGroup* rank_group_ = nullptr;
  bool is_in_host_memory_ = true;  // else they go by NCCL, whose calls are those of one thread
  StateDictOptions options_;
  py::object allocate_;
  Refusal refusal_;
  std::optional<py::error_already_set> raised_;
};

ReduceOp operation_of(TensorCall& call, py::handle op) {
  ReduceOp operation = ReduceOp::sum;
  call.read([&] { operation = reduce_op_of(argument_of<std::string>(op, "op")); });
  return operation;
}

Rank root_of(TensorCall& call, py::handle root) {
  Rank rank(0);
  call.read([&] { rank = RankChoice::of(root, "root").rank; });
  return rank;
}

py::object all_reduce(py::handle ranks, py::handle given, py::handle op, const py::dict& options) {
  TensorCall call(ranks, options);
  const ReduceOp operation = operation_of(call, op);
  const Tensor tensor = call.argument(given, "tensor", Use::write);
  return call.make(
      [&] { return all_reduce_tensor(call.ranks(), tensor.view(), operation, call.options()); },
      nothing);
}

py::object broadcast(py::handle ranks, py::handle given, py::handle root_given,
                     const py::dict& options) {
  TensorCall call(ranks, options);
  const Rank root = root_of(call, root_given);
  const bool is_root =
      call.ranks().group() != nullptr && call.ranks().group()->rank() == root.number;
  const Tensor tensor = call.argument(given, "tensor", is_root ? Use::read : Use::write);
  return call.make(
      [&] { return broadcast_tensor(call.ranks(), tensor.view(), root, call.options()); }, nothing);
}

py::object all_gather(py::handle ranks, py::handle given, const py::dict& options) {
  TensorCall call(ranks, options);
  const Tensor tensor = call.argument(given, "tensor", Use::read);
  return call.make([&] { return all_gather_tensor(call.ranks(), tensor.view(), call.options()); },
                   [](std::vector<Tensor> all) -> py::object {
                     py::list list;
                     for (Tensor& each : all) list.append(object_of(std::move(each)));
                     return list;
                   });
}

py::object reduce_scatter(py::handle ranks, py::handle send, py::handle receive, py::handle op,
                          const py::dict& options) {
  TensorCall call(ranks, options);
  const ReduceOp operation = operation_of(call, op);
  const Tensor sent = call.argument(send, "send", Use::read);
  const Tensor received = call.argument(receive, "receive", Use::write);
  return call.make(
      [&] {
        return reduce_scatter_tensor(call.ranks(), sent.view(), received.view(), operation,
                                     call.options());
      },
      nothing);
}

py::object send(py::handle ranks, RankChoice destination, py::handle given,
                const py::dict& options) {
  TensorCall call(ranks, options);
  const Tensor tensor = call.argument(given, "tensor", Use::read);
  return call.make_alone(
      [&] { return send_tensor(call.ranks(), destination.rank, tensor.view(), call.options()); },
      nothing);
}

py::object recv(py::handle ranks, RankChoice source, const std::string& device_name,
                const py::dict& options) {
  TensorCall call(ranks, options);
  const Device device = device_of(device_name);
  return call.make_alone(
      [&] { return recv_tensor(call.ranks(), source.rank, call.options(), device); },
      [](Tensor tensor) { return object_of(std::move(tensor)); });
}

py::object recv_into(py::handle ranks, RankChoice source, py::handle given,
                     const py::dict& options) {
  TensorCall call(ranks, options);
  const Tensor tensor = call.argument(given, "tensor", Use::write);
  return call.make_alone(
      [&] { return recv_tensor_into(call.ranks(), source.rank, tensor.view(), call.options()); },
      nothing);
}

/// tensors  a mapping; None: this is not the root
py::object state_dict(py::handle ranks, const py::object& given, py::handle root_given,
                      const py::dict& options) {
  TensorCall call(ranks, options);
  const Rank root = root_of(call, root_given);
  std::vector<Tensor> kept;
  std::vector<NamedTensorView> views;
  call.read([&] {
    if (given.is_none()) return;
    for (const auto& [key, value] : dict_of(given, "tensors")) {
      const std::string name = tensor_name_of(key);
      kept.push_back(call.argument(value, "tensors['" + name + "']", Use::read));
      views.push_back({name, kept.back().view()});
    }
  });
  return call.make(
      [&] {
        std::optional<Span<const NamedTensorView>> tensors;
        if (!given.is_none()) tensors = Span<const NamedTensorView>(views);
        return broadcast_state_dict(call.ranks(), tensors, root, call.options());
      },
      [](std::vector<NamedTensor> all) -> py::object {
        py::dict named;
        for (NamedTensor& each : all) named[text_of(each.name)] = object_of(std::move(each.tensor));
        return named;
      });
}

}  // namespace

void bind_tensor_calls(py::module_& module) {
  module.def("all_reduce_tensor", &all_reduce);
  module.def("broadcast_tensor", &broadcast);
  module.def("all_gather_tensor", &all_gather);
  module.def("reduce_scatter_tensor", &reduce_scatter);
  module.def("send_tensor", named(&send, "ranks", "dst", "tensor", "options"));
  module.def("recv_tensor", named(&recv, "ranks", "src", "device", "options"));
  module.def("recv_tensor_into", named(&recv_into, "ranks", "src", "tensor", "options"));
  module.def("broadcast_state_dict", &state_dict);
}

}  // namespace muster::python
