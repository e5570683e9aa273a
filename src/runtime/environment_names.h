#pragma once

#include <cstdint>
#include <string_view>

#include "muster/environment.h"
#include "muster/span.h"

// Which variables say a number, as the table in docs/runtime.md.

namespace muster::runtime {

/// Whose variable it is, which decides when it counts.
enum class Launcher : std::uint8_t {
  /// One that sets the names that all know (torchrun, composer, musterrun), or a person: always.
  common,
  /// Slurm: within a step, for the processes that the step has started itself.
  slurm,
  /// Open MPI: for the processes that it has started itself.
  open_mpi,
  /// What speaks PMI, such as MPICH's hydra: as Open MPI.
  pmi,
  /// PMIx says no size: where another variable says one.
  pmix,
  /// A pod of a Kubernetes job with indices: where another variable says a size, and the pod has
  /// one process.
  kubernetes,
};

/// A variable that says a number.
struct NumberVariable {
  std::string_view name;
  Launcher launcher = Launcher::common;
};

/// The variables that say it; the first one that counts and is set does.
Span<const NumberVariable> variables_of(JobNumber number);

/// Where several variables together say it, they are looked at after these.
std::string_view first_variable_of(JobNumber number);

}  // namespace muster::runtime
