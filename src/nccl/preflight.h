#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/preflight.h"
#include "muster/process_group.h"
#include "nccl/device.h"

namespace muster::nccl_internal {

// The reports that ranks exchange before they call NCCL. docs/nccl.md describes every byte.

/// One rank's part of the first round.
struct PreflightReport {
  int rank = 0;
  std::uint64_t members = 0;  ///< a digest of the epoch and its size, as this rank knows them
  int nccl_version = 0;
  Device::Uuid device_uuid{};
  std::uint64_t host = 0;   ///< a digest of what NCCL takes for the host
  std::uint64_t terms = 0;  ///< a digest of the options that all must share
  ProcessId process;
  std::optional<Error> failure;  ///< why this rank cannot take part
};

std::string encode(const PreflightReport& report);
/// errors  protocol_error
Result<PreflightReport> decode_preflight(std::string_view bytes);

/// A digest of what identifies this host for NCCL: NCCL_HOSTID, else its name and boot.
std::uint64_t host_digest();

/// None if these ranks get a communicator. First who cannot take part, then who differs from rank
/// 0, then who shares a device.
std::optional<communicator::Rejection> find_rejection(const std::vector<PreflightReport>& reports);

}  // namespace muster::nccl_internal
