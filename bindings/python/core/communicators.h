#pragma once

#include <memory>
#include <vector>

#include <pybind11/pybind11.h>

#include "muster/communicator.h"
#include "muster/runtime.h"
#include "values.h"

namespace muster::python {

/// What Python holds: one of its own, or one of a runtime's.
struct CommunicatorHandle {
  Lent<Communicator> communicator;
  Communicator& object() const { return *communicator; }
};

/// A call of a communicator, for as long as this lives: the end of the interpreter aborts it,
/// because it would come back to none. With the GIL.
class CallInProgress {
 public:
  /// communicator  null: there is none
  explicit CallInProgress(Communicator* communicator);
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

 private:
  Communicator* const communicator_;
};

/// The interpreter ends.
void abort_calls_in_progress();

/// Of options of both libraries, as muster/communicator.py gives them.
void set_communicator_options(CommunicatorOptions& options, const py::dict& given);

/// Of options of each library; None: its defaults.
CommunicatorMaker nccl_maker_of(const py::object& given);
/// Those of the libraries that are linked.
std::vector<CommunicatorMaker> makers_of(const py::object& nccl, const py::object& gloo);

void bind_nccl(py::module_& module);
void bind_gloo(py::module_& module);

}  // namespace muster::python
