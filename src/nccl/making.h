#pragma once

#include <string>

#include "muster/nccl.h"

namespace muster::nccl {

/// Loads libnccl and lets it make an id. Both may take as long as they like, this may not: what
/// comes too late is given up.
///
/// errors  those of Library, timed_out, resource_exhausted (no thread)
Result<NcclUniqueId> make_id(const std::string& library, Duration timeout);

}  // namespace muster::nccl
