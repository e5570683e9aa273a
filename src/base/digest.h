#pragma once

#include <cstdint>
#include <string_view>

namespace muster::base {

/// 64 bits that tell texts apart, the same in every process: FNV-1a.
inline std::uint64_t digest_of(std::string_view bytes) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : bytes)
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return digest;
}

}  // namespace muster::base
