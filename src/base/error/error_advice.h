#pragma once

#include <cstdint>
#include <string_view>

#include "muster/error.h"

namespace muster::base {

/// How the ranks of an error with this code are introduced, such as "missing".
std::string_view role_of_ranks(ErrorCode code);

/// What somebody who meets this error in this call can do; empty where its fields or its detail say
/// so. A detail says so itself where that depends on what was refused.
std::string_view advice_for(const Error& error);

/// Whether a codec_mismatch tells of fingerprints of types, which have 64 bits, not of codecs.
inline bool tells_of_types(const Error& error) {
  constexpr std::uint64_t codec_max = 0xffffffff;
  return error.expected > codec_max || error.actual > codec_max;
}

}  // namespace muster::base
