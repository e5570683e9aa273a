#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/types.h"

namespace muster::base {

/// Why a server or a store does not start where a sandbox hides both sources: what it would draw
/// itself could be guessed.
inline constexpr std::string_view no_random =
    "the system gives no random numbers: neither getrandom nor /dev/urandom";

/// Fills `size` bytes from the kernel's generator. For the rims only.
///
/// returns  false: the system gives none
[[nodiscard]] bool fill_random(void* data, std::size_t size);
/// returns  nothing: the system gives none
std::optional<std::uint64_t> random_u64();

/// This process's id: made at the first call, and made anew in a forked child. Zero: the system
/// gives no random bytes.
ProcessId own_process_id();

/// Id, host name and pid of this process, with `label` (cut to 64 bytes).
ProcessInfo own_process(std::string_view label);

}  // namespace muster::base
