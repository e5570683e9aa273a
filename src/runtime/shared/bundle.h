#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "muster/result.h"
#include "muster/shared.h"

// One encoding of a configuration and tensors with names, for files and for shared memory. Numbers
// are little-endian.
//
//     header        64 bytes: magic, version, whether a checksum ends it, generation, bytes of all,
//                   bytes of the table, zeros, and a checksum of these
//     table         bytes of the configuration; of each tensor its name, dtype and shape
//     configuration
//     tensors       contiguous, each at a multiple of 64 bytes
//     checksum      of all before it, or 0

namespace muster::runtime {

inline constexpr std::size_t bundle_header_bytes = 64;
inline constexpr std::size_t bundle_alignment = 64;

/// Files that others may cut or damage have one; memory that the kernel keeps has none.
enum class BundleCheck : std::uint8_t { none = 0, checksum = 1 };

struct BundleHeader {
  BundleCheck check = BundleCheck::none;
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;  ///< of the whole bundle
  std::uint64_t table_bytes = 0;
};

struct Bundle {
  std::uint64_t generation = 0;
  SharedStateView state;  ///< in the bundle's memory
};

/// Takes the bytes of a bundle, in order.
using BundleSink = std::function<Result<void>(const void* data, std::uint64_t bytes)>;

/// Why a state cannot be shared: a tensor that `validate` refuses, or of a device's memory.
///
/// returns  invalid_argument, too_large
std::optional<Error> refusal_of_state(const SharedStateView& state);

/// state   that is not refused
/// errors  too_large, those of the sink
Result<void> encode_bundle(const SharedStateView& state, std::uint64_t generation,
                           BundleCheck check, const BundleSink& sink);

// Total functions of their input: what is no bundle, or is cut or changed, is codec_failure.

Result<BundleHeader> decode_bundle_header(std::string_view bytes);
/// check  what it must have
/// bytes  all of it
Result<Bundle> decode_bundle(char* data, std::uint64_t bytes, BundleCheck check);

}  // namespace muster::runtime
