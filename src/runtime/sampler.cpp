#include "muster/sampler.h"

#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "muster/error.h"

// The order of an epoch is that of torch.randperm on a processor: Fisher and Yates's, whose i-th
// step swaps element i with one of those from i on. What torch draws is known by its results, which
// tests/unit/runtime/sampler_test.cpp holds.

namespace muster {
inline namespace v1 {

namespace {

/// Above, sums would overflow.
constexpr std::uint64_t count_max = std::uint64_t{1} << 62;

/// From so many elements on torch draws 64 bits for each: a twentieth of 2^32 - 1.
constexpr std::uint64_t wide_draws_from = std::numeric_limits<std::uint32_t>::max() / 20;

/// Index: what holds each number below `count`.
template <class Index>
std::vector<Index> permutation(std::uint64_t count, std::uint64_t seed) {
  std::vector<Index> order(count);
  std::iota(order.begin(), order.end(), Index{0});
  // torch keeps 32 bits of the seed.
  std::mt19937 draws(static_cast<std::uint32_t>(seed));
  for (std::uint64_t i = 0; i + 1 < count; ++i) {
    std::uint64_t draw = draws();
    if (count >= wide_draws_from) draw = draw << 32 | draws();
    std::swap(order[i], order[i + draw % (count - i)]);
  }
  return order;
}

/// The elements at the places `first`, `first + stride`, ... of an order that begins anew at its
/// end.
template <class Index>
std::vector<std::uint64_t> every(const std::vector<Index>& order, std::uint64_t first,
                                 std::uint64_t stride, std::uint64_t size) {
  std::vector<std::uint64_t> elements(size);
  for (std::uint64_t i = 0; i < size; ++i) elements[i] = order[(first + i * stride) % order.size()];
  return elements;
}

Error refused(std::string detail) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.operation = "DistributedSampler::create";
  error.detail = std::move(detail);
  return error;
}

}  // namespace

Result<DistributedSampler> DistributedSampler::create(std::uint64_t element_count,
                                                      const SamplerOptions& options) {
  if (element_count > count_max || options.replica_count > count_max)
    return refused("more than 2^62 elements or ranks");
  if (options.replica_count == 0)
    return refused("SamplerOptions::replica_count is 0: give the number of ranks that share");
  if (options.rank >= options.replica_count) {
    return refused("SamplerOptions::rank is " + std::to_string(options.rank) +
                   ", but the ranks are 0 to " + std::to_string(options.replica_count - 1));
  }
  return DistributedSampler(element_count, options);
}

std::vector<std::uint64_t> DistributedSampler::indices() const {
  const std::uint64_t mine = size();
  if (!options_.shuffle) {
    std::vector<std::uint64_t> elements(mine);
    for (std::uint64_t i = 0; i < mine; ++i)
      elements[i] = (options_.rank + i * options_.replica_count) % element_count_;
    return elements;
  }
  if (mine == 0) return {};
  const std::uint64_t seed = options_.seed + epoch_;
  if (element_count_ <= std::numeric_limits<std::uint32_t>::max())
    return every(permutation<std::uint32_t>(element_count_, seed), options_.rank,
                 options_.replica_count, mine);
  return every(permutation<std::uint64_t>(element_count_, seed), options_.rank,
               options_.replica_count, mine);
}

std::uint64_t DistributedSampler::size() const {
  const std::uint64_t whole = element_count_ / options_.replica_count;
  const std::uint64_t rest = element_count_ % options_.replica_count;
  switch (options_.uneven) {
    case UnevenElements::pad: return whole + (rest > 0 ? 1 : 0);
    case UnevenElements::drop: return whole;
    case UnevenElements::exact: return whole + (options_.rank < rest ? 1 : 0);
  }
  return whole;
}

std::uint64_t DistributedSampler::padded_count() const {
  const std::uint64_t rest = element_count_ % options_.replica_count;
  return options_.uneven == UnevenElements::pad && rest > 0 ? options_.replica_count - rest : 0;
}

std::uint64_t DistributedSampler::dropped_count() const {
  return options_.uneven == UnevenElements::drop ? element_count_ % options_.replica_count : 0;
}

}  // namespace v1
}  // namespace muster
