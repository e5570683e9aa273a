#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "calls.h"
#include "muster/runtime.h"
#include "muster/tensor.h"
#include "muster/turns.h"
#include "values.h"

// What Python holds of the library muster-runtime, and what its parts share.

namespace muster::python {

/// Ranks of a job: a group of their own, or a runtime's world, which is there until the runtime has
/// been shut down.
struct RanksHandle {
  Lent<RankGroup> ranks;
  RankGroup& object() const { return *ranks; }
};

py::object value_of_ranks(RankGroup&& ranks);

/// A RanksHandle or a GroupHandle, in which tensors go from rank to rank.
TensorRanks tensor_ranks_of(py::handle object);
/// The group of either.
StatelessProcessGroup& group_of(py::handle object);

ReduceOp reduce_op_of(const std::string& name);

/// Of a tuple: silence_max, limit, and of signal files arrival_max.
TurnOptions turn_options_of(const py::tuple& given);

/// A text for the other ranks, of a str; what UTF-8 has not is replaced.
struct Told {
  std::string text;

  static Told of(py::handle text, std::string_view argument = "text");
};

/// Progress, lent to Python while a work runs.
class ProgressHandle {
 public:
  explicit ProgressHandle(Progress& progress) : progress_(&progress) {}

  void tell(const Told& told) {
    if (progress_ != nullptr) (*progress_)(told.text);
  }
  void end() { progress_ = nullptr; }

 private:
  Progress* progress_;
};

/// A work of Python's, as turns.h runs it: on the thread that called, with the GIL meanwhile.
class PythonWork {
 public:
  explicit PythonWork(py::object work) : work_(std::move(work)) {}

  /// Needs no GIL.
  ///
  /// returns  the bytes that it has given
  /// throws   what the others are told
  std::string run(Progress& progress);
  /// Raises what it has raised, if it has.
  void raise_again();

 private:
  py::object work_;
  std::optional<py::error_already_set> raised_;
};

/// What this rank refuses of its arguments in a collective call. The others are to hear of it, so
/// the call is made all the same, with a refusal, and raises here what was raised first.
class Refusal {
 public:
  /// Runs what reads arguments.
  template <class Read>
  void read(const Read& read) {
    try {
      read();
    } catch (const py::error_already_set& raised) {
      keep(raised);
    } catch (const py::builtin_exception& wrong) {
      wrong.set_error();
      keep(py::error_already_set());
    }
  }

  /// What the others are told; empty: nothing was refused.
  std::string reason() const;
  void raise_if_there() const {
    if (raised_) throw py::error_already_set(*raised_);
  }

  /// Makes the call, which tells the others.
  template <class Make>
  auto settle(const Make& make) const {
    try {
      auto made = make();
      raise_if_there();
      return made;
    } catch (const py::error_already_set& ended) {
      if (!raised_ || !ended.matches(PyExc_Exception)) throw;
    }
    throw py::error_already_set(*raised_);
  }

 private:
  void keep(const py::error_already_set& raised);

  std::optional<py::error_already_set> raised_;
};

/// Thrown where a function of Python's has raised, which PythonWork and `allocate` keep.
class Raised : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "ValueError: what it says".
std::string text_of_raised(const py::error_already_set& raised);

/// Makes a blocking call that runs a function of Python's: `raise_again` raises what that has
/// raised.
template <class Call, class Convert, class RaiseAgain>
py::object block_with_work(const Call& call, const Convert& convert,
                           const RaiseAgain& raise_again) {
  try {
    return block(call, convert);
  } catch (const Raised&) {
    raise_again();
    throw;
  }
}

}  // namespace muster::python
