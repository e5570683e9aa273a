#include "measure.h"

#include <algorithm>
#include <cmath>

namespace muster::bench {

double quantile(std::vector<double>& samples, double share) {
  if (samples.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(
      std::floor(share * static_cast<double>(samples.size() - 1) + 0.5));
  std::nth_element(samples.begin(), samples.begin() + at, samples.end());
  return samples[static_cast<std::size_t>(at)];
}

}  // namespace muster::bench
