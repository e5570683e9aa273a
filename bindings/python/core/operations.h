#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include "communicators.h"
#include "muster/communicator.h"
#include "muster/tensor.h"

namespace muster::python {

/// One operation of a communicator, with its tensors, checked and ready to begin: now, or together
/// with others in a group.
class Operation {
 public:
  /// send, receive  None: this rank has none
  /// options        a dict: op, factor, root, counts, stream, timeout
  /// errors         ValueError, TypeError, invalid_argument: of an argument, by its name
  static Operation of(const CommunicatorHandle& communicator, const std::string& name,
                      py::handle send, py::handle receive, const py::dict& options);

  /// Needs no GIL.
  Result<void> run(Communicator& communicator) const;

 private:
  const void* send() const { return data_of(send_); }
  void* receive() const { return data_of(receive_); }
  static void* data_of(const std::optional<Tensor>& tensor);

  void take_tensors(Communicator& communicator, py::handle send, py::handle receive);
  void check_dtypes();
  void check_sizes(const Communicator& communicator);
  std::size_t elements_of(const std::optional<Tensor>& tensor, std::string_view argument,
                          std::size_t parts) const;
  Result<void> run_uneven(Communicator& communicator) const;

  std::string name_;
  std::optional<Tensor> send_;
  std::optional<Tensor> receive_;
  std::size_t count_ = 0;
  bool is_uneven_ = false;  ///< by counts_
  std::vector<std::size_t> counts_;
  DataType type_ = DataType::uint8;
  std::size_t elements_each_ = 1;  ///< so many of `type_` make one of the tensors'
  Reduction reduction_ = ReduceOp::sum;
  int root_ = 0;
  void* stream_ = nullptr;
  Duration timeout_ = default_timeout;
};

}  // namespace muster::python
