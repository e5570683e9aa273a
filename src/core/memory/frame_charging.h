#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/payload.h"
#include "wire/frame.h"

namespace muster::core {

/// So many bytes of any frame are stored, whatever the quota says; but nothing of what brings
/// something to keep, of who has its share; and `frame_read_bytes_min` of who has its part of the
/// reserve.
inline constexpr std::size_t frame_bytes_always = 8 * 1024;
/// A frame that frees memory is stored in any case if its body is no longer.
inline constexpr std::uint32_t freeing_body_bytes_always = 16 * 1024;

/// A connection may have so many bytes of frames that wait, whatever others have; and so many are
/// read at once in any case, which is all of who has its part of the reserve. For more there has to
/// be room.
inline constexpr std::uint64_t frame_bytes_allowed = 2 * 1024;
inline constexpr std::uint64_t frame_read_bytes_min = 1024;

/// What is refused first when memory is short: what brings something to keep, then what reads. What
/// removes, acknowledges or proves life goes on, but not at any length.
///
/// essential_bytes_max  a longer body is charged like one that brings something to keep
Charging charging_of(const wire::FrameHeader& header, std::uint32_t essential_bytes_max);

}  // namespace muster::core
