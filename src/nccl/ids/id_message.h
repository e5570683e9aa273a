#pragma once

#include <string>
#include <string_view>

#include "muster/nccl_id.h"

namespace muster::nccl_internal {

// The wire form of the message with which rank 0 tells an id, or why there is none. docs/nccl.md
// describes every byte.

/// An error is encoded as its code, `actual` and `detail`.
std::string encode_id_message(const Result<nccl::UniqueId>& id);

/// errors  the error that rank 0 tells; protocol_error (another form)
Result<nccl::UniqueId> decode_id_message(std::string_view bytes);

}  // namespace muster::nccl_internal
