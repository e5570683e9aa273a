#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "muster/result.h"
#include "muster/tensor.h"
#include "runtime/shared/bundle.h"

namespace muster::runtime {

/// Makes a folder, and those above it. Others may do so at the same time.
///
/// errors  invalid_argument, permission_denied, resource_exhausted, unavailable
Result<void> make_folder(const std::string& folder);

/// Makes a client of NFS ask its server for the folder's entries: it remembers for up to a minute
/// which names there are, and which there are not.
void refresh_folder(const std::string& folder);

struct GenerationRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

/// A bundle that was read from a file, with its memory.
struct LoadedBundle {
  Tensor memory;
  Bundle bundle;
};

/// Reads a bundle with a checksum. A file that is being replaced is read again.
///
/// errors  not_found (no file, or of another generation), codec_failure (cut, damaged, or no
///         bundle), resource_exhausted, permission_denied, unavailable
Result<LoadedBundle> load_bundle(const std::string& folder, const std::string& name,
                                 GenerationRange generations = {});

}  // namespace muster::runtime
