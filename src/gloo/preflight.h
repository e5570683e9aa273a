#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/preflight.h"
#include "muster/process_group.h"

namespace muster::gloo_internal {

// The reports that ranks exchange before they connect. docs/gloo.md describes every byte.

/// One rank's part of the first round.
struct PreflightReport {
  int rank = 0;
  std::uint64_t members = 0;  ///< a digest of the epoch and its size, as this rank knows them
  ProcessId process;
  std::uint64_t terms = 0;    ///< a digest of what Gloo's two sides must have in common
  std::uint32_t version = 0;  ///< Gloo's
  std::uint64_t host = 0;     ///< a digest
  std::uint8_t family = 0;    ///< address family: 4 or 6
  bool is_loopback = false;
  std::vector<std::string> addresses;  ///< where each rank finds it
  std::optional<Error> failure;        ///< why this rank cannot take part
};

std::string encode(const PreflightReport& report);
/// errors  protocol_error
Result<PreflightReport> decode_preflight(std::string_view bytes, int world_size);

/// None if these ranks get a communicator. First who cannot take part, then who differs from rank
/// 0, then whose address the others cannot use.
std::optional<communicator::Rejection> find_rejection(const std::vector<PreflightReport>& reports);

}  // namespace muster::gloo_internal
