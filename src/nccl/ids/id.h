#pragma once

#include <optional>
#include <string>

#include "muster/nccl_functions.h"
#include "muster/result.h"

namespace muster::nccl_internal {

/// With NCCL_COMM_ID all ids are one, and nobody listens for its ranks.
std::optional<Error> refusal_of_fixed_id();

/// Makes an id, and with it a thread and a listening socket of this process, which children that
/// are exec'd from then on do not inherit.
///
/// errors  nccl (actual, 0 when it was not NCCL that refused; detail)
Result<nccl::UniqueId> new_id(const nccl::Functions& nccl);

/// The same, where NCCL may take as long as it likes and this may not: what comes too late is given
/// up.
///
/// errors  those of new_id, timed_out, resource_exhausted (no thread)
Result<nccl::UniqueId> make_id(const nccl::Functions& nccl, Duration timeout);

/// The same, and loads libnccl before.
///
/// errors  also library_missing
Result<nccl::UniqueId> make_id(const std::string& library, Duration timeout);

}  // namespace muster::nccl_internal
