#pragma once

#include <string>
#include <string_view>

#include "muster/nccl.h"

namespace muster::nccl {

// What rank 0 tells the others: docs/nccl.md has it byte by byte.

/// Of an error: its code, `actual` and `detail`.
std::string encode_answer(const Result<NcclUniqueId>& id);

/// errors  what the other side tells; protocol_error (it is no answer)
Result<NcclUniqueId> decode_answer(std::string_view bytes);

}  // namespace muster::nccl
