#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "muster/types.h"

namespace muster::base {

/// Fills `size` bytes from the kernel's generator. For the rims only.
void fill_random(void* data, std::size_t size);

std::uint64_t random_u64();

/// This process's id: made at the first call, and made anew in a forked child.
ProcessId own_process_id();

/// Id, host name and pid of this process, with `label` (cut to 64 bytes).
ProcessInfo own_process(std::string_view label);

}  // namespace muster::base
