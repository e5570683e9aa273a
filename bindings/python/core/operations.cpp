#include "operations.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <pybind11/stl.h>

#include "arguments.h"
#include "errors.h"
#include "muster/nccl.h"
#include "runtime.h"
#include "tensors.h"

namespace muster::python {

namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<DataType> data_type_of(Dtype dtype) {
  if (dtype == dtype::int8) return DataType::int8;
  if (dtype == dtype::uint8) return DataType::uint8;
  if (dtype == dtype::int32) return DataType::int32;
  if (dtype == dtype::uint32) return DataType::uint32;
  if (dtype == dtype::int64) return DataType::int64;
  if (dtype == dtype::uint64) return DataType::uint64;
  if (dtype == dtype::float16) return DataType::float16;
  if (dtype == dtype::float32) return DataType::float32;
  if (dtype == dtype::float64) return DataType::float64;
  if (dtype == dtype::bfloat16) return DataType::bfloat16;
  if (dtype == dtype::float8_e4m3fn) return DataType::float8_e4m3;
  if (dtype == dtype::float8_e5m2) return DataType::float8_e5m2;
  return std::nullopt;
}

/// Whether the parts of the ranks may differ in size.
bool is_uneven(std::string_view name) {
  return is_one_of(name, {"all_gather_v", "reduce_scatter_v", "gather_v", "scatter_v"});
}

bool reduces(std::string_view name) {
  return is_one_of(name, {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v"});
}

Reduction reduction_of(const py::dict& given) {
  if (!given["factor"].is_none()) return scaled_sum(option_of<double>(given, "factor"));
  return reduce_op_of(option_of<std::string>(given, "op"));
}

/// Refuses a tensor that is not where a communicator works.
void check_device(const Communicator& communicator, const Tensor& tensor,
                  std::string_view argument) {
  const Device device = tensor.view().device;
  if (communicator.kind() != "nccl") {
    if (device.is_host()) return;
    refuse(argument, "it is on " + to_string(device) + ", and Gloo takes host memory");
  }
  const bool is_on_gpu = device.type == DeviceType::cuda ||
                         device.type == DeviceType::cuda_managed || device.type == DeviceType::rocm;
  if (!is_on_gpu)
    refuse(argument, "it is on " + to_string(device) + ", and NCCL takes device memory");
  const auto own = nccl::device(communicator);
  if (device.type == DeviceType::cuda_managed || !own || *own == device.index) return;
  refuse(argument, "it is on " + to_string(device) + ", and the communicator is for device " +
                       std::to_string(*own));
}

}  // namespace

void* Operation::data_of(const std::optional<Tensor>& tensor) {
  if (!tensor) return nullptr;
  return static_cast<char*>(tensor->view().data) + tensor->view().byte_offset;
}

Operation Operation::of(const CommunicatorHandle& handle, const std::string& name, py::handle send,
                        py::handle receive, const py::dict& options) {
  Communicator& communicator = handle.object();
  Operation made;
  made.name_ = name;
  made.reduction_ = reduction_of(options);
  const bool is_to_a_peer = is_one_of(name, {"send", "recv"});
  made.root_ = argument_of<int>(options["root"], is_to_a_peer ? "peer" : "root");
  made.stream_ = stream_of(options["stream"]);
  made.timeout_ = duration_option_of(options, "timeout", default_timeout);
  made.is_uneven_ = is_uneven(name);
  if (made.is_uneven_) made.counts_ = integers_of<std::size_t>(options["counts"], "counts");
  made.take_tensors(communicator, send, receive);
  made.check_dtypes();
  made.check_sizes(communicator);
  return made;
}

void Operation::take_tensors(Communicator& communicator, py::handle send, py::handle receive) {
  const bool is_in_place = send.is(receive);
  const bool is_root = root_ == communicator.rank();
  const bool sends_only = name_ == "send" || (name_ == "broadcast" && is_root) ||
                          (name_ == "reduce" && is_in_place && !is_root);
  const Use use = is_in_place && !sends_only ? Use::write : Use::read;
  // What only receives is called "out", unless it is the one tensor of its call.
  if (!send.is_none()) {
    send_ = tensor_of_argument(send, "tensor", use, Layout::contiguous, stream_);
    check_device(communicator, *send_, "tensor");
  }
  if (is_in_place) {
    if (send_) receive_ = Tensor(send_->view(), send_->owner());
  } else if (!receive.is_none()) {
    const char* const argument = name_ == "recv" ? "tensor" : "out";
    receive_ = tensor_of_argument(receive, argument, Use::write, Layout::contiguous, stream_);
    check_device(communicator, *receive_, argument);
  }
}

/// What only moves may be of any dtype: it goes as bytes.
void Operation::check_dtypes() {
  const Tensor* const first = send_ ? &*send_ : receive_ ? &*receive_ : nullptr;
  if (first == nullptr) return;
  const Dtype dtype = first->view().dtype;
  if (send_ && receive_ && receive_->view().dtype != dtype) {
    refuse("out", "its dtype is " + to_string(receive_->view().dtype) + ", and that of tensor is " +
                      to_string(dtype));
  }
  if (const auto type = data_type_of(dtype)) {
    type_ = *type;
  } else if (reduces(name_)) {
    refuse("tensor", "no reduction takes " + to_string(dtype));
  } else {
    elements_each_ = dtype.byte_count();
    if (elements_each_ == 0) refuse("tensor", "its elements do not end at bytes");
    type_ = DataType::uint8;
  }
}

/// parts  into how many equal ones it is cut
std::size_t Operation::elements_of(const std::optional<Tensor>& tensor, std::string_view argument,
                                   std::size_t parts) const {
  const std::size_t elements = tensor->view().element_count();
  if (elements % parts != 0) {
    refuse(argument, "it has " + std::to_string(elements) + " elements, which " +
                         std::to_string(parts) + " ranks do not divide");
  }
  return elements / parts;
}

void Operation::check_sizes(const Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.world_size());
  const bool is_root = root_ == communicator.rank();
  if (is_uneven_) {
    const auto own = static_cast<std::size_t>(communicator.rank());
    if (counts_.size() != ranks)
      refuse("counts", "one for each of " + std::to_string(ranks) + " ranks");
    const std::size_t all = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
    const bool sends_all = is_one_of(name_, {"reduce_scatter_v", "scatter_v"});
    const std::size_t sent = sends_all ? all : counts_[own];
    const std::size_t received = sends_all ? counts_[own] : all;
    if (send_ && send_->view().element_count() != sent)
      refuse("tensor", "by counts it has " + std::to_string(sent) + " elements");
    if (receive_ && receive_->view().element_count() != received)
      refuse("out", "by counts it has " + std::to_string(received) + " elements");
    for (std::size_t& count : counts_) count *= elements_each_;
    return;
  }
  const bool sends_all = is_one_of(name_, {"reduce_scatter", "scatter", "all_to_all"});
  const bool receives_all = is_one_of(name_, {"all_gather", "gather", "all_to_all"});
  std::optional<std::size_t> count;
  if (send_) count = elements_of(send_, "tensor", sends_all ? ranks : 1);
  if (receive_) {
    const std::size_t received = elements_of(receive_, "out", receives_all ? ranks : 1);
    if (count && *count != received) {
      refuse("out", "it has " + std::to_string(receive_->view().element_count()) +
                        " elements, and would have " +
                        std::to_string(*count * (receives_all ? ranks : 1)));
    }
    count = received;
  }
  if (!count) refuse("tensor", is_root ? "the root gives one" : "there is none");
  count_ = *count * elements_each_;
}

Result<void> Operation::run(Communicator& on) const {
  if (is_uneven_) return run_uneven(on);
  if (name_ == "all_reduce")
    return on.all_reduce(send(), receive(), count_, type_, reduction_, stream_, timeout_);
  if (name_ == "broadcast")
    return on.broadcast(send(), receive(), count_, type_, root_, stream_, timeout_);
  if (name_ == "reduce")
    return on.reduce(send(), receive(), count_, type_, reduction_, root_, stream_, timeout_);
  if (name_ == "all_gather")
    return on.all_gather(send(), receive(), count_, type_, stream_, timeout_);
  if (name_ == "reduce_scatter")
    return on.reduce_scatter(send(), receive(), count_, type_, reduction_, stream_, timeout_);
  if (name_ == "all_to_all")
    return on.all_to_all(send(), receive(), count_, type_, stream_, timeout_);
  if (name_ == "gather")
    return on.gather(send(), receive(), count_, type_, root_, stream_, timeout_);
  if (name_ == "scatter")
    return on.scatter(send(), receive(), count_, type_, root_, stream_, timeout_);
  if (name_ == "send") return on.send(send(), count_, type_, root_, stream_, timeout_);
  return on.recv(receive(), count_, type_, root_, stream_, timeout_);
}

Result<void> Operation::run_uneven(Communicator& on) const {
  if (name_ == "all_gather_v")
    return on.all_gather_v(send(), receive(), counts_, type_, stream_, timeout_);
  if (name_ == "reduce_scatter_v")
    return on.reduce_scatter_v(send(), receive(), counts_, type_, reduction_, stream_, timeout_);
  if (name_ == "gather_v")
    return on.gather_v(send(), receive(), counts_, type_, root_, stream_, timeout_);
  return on.scatter_v(send(), receive(), counts_, type_, root_, stream_, timeout_);
}

}  // namespace muster::python
