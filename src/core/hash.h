#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster::core {

/// SipHash-1-3 of `bytes`: nobody who does not know `key` can choose bytes that collide.
/// see  https://www.aumasson.jp/siphash/siphash.pdf
std::uint64_t keyed_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes);

}  // namespace muster::core
