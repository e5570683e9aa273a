#include "server/heap_trimmer.h"

#include <malloc.h>

#include <algorithm>

#include "base/monotonic_now.h"

namespace muster::server {

bool HeapTrimmer::is_due(std::uint64_t bytes, base::Instant now) {
  unused_since_ = std::min(unused_since_, now);
  if (now < not_before_) return false;
  return peak_bytes_ - bytes >= at_once_bytes || now - unused_since_ >= patience;
}

void HeapTrimmer::trim(std::uint64_t bytes) {
  const base::Instant began = base::monotonic_now();
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  const base::Instant ended = base::monotonic_now();
  not_before_ = ended + time_part * (ended - began);
  peak_bytes_ = bytes;
  unused_since_ = base::far_future;
}

}  // namespace muster::server
