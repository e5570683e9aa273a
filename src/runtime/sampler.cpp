#include "muster/sampler.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "muster/error.h"

// The order of an epoch is that of torch.randperm on a CPU since torch 2.6, which has two shuffles:
//
//   below `inside_out_from`  Fisher and Yates's: step i swaps place i with a place from i on, by a
//                            draw of 32 bits
//   from there on            its inside-out form: step i moves the element at a place up to i to
//                            place i and puts element i there, by a draw of 64 bits
//
// tests/runtime/sampler_test.cpp has orders that torch printed.

namespace muster {
inline namespace v1 {

namespace {

/// Above, sums would overflow.
constexpr std::uint64_t count_max = std::uint64_t{1} << 62;

/// A twentieth of 2^32 - 1: draws of 32 bits modulo a larger count would be biased.
constexpr std::uint64_t inside_out_from = std::numeric_limits<std::uint32_t>::max() / 20;

/// Calls `step(i, place(i))` for each i below the size of `order`, in turn. Memory of the places is
/// requested some steps ahead: in a long order it is in no cache.
template <class Index, class Place, class Step>
void for_each_place(const std::vector<Index>& order, Place place, Step step) {
  std::array<std::uint64_t, 64> places{};
  for (std::uint64_t first = 0; first < order.size(); first += places.size()) {
    const auto size = std::min<std::uint64_t>(places.size(), order.size() - first);
    for (std::uint64_t k = 0; k < size; ++k) {
      places[k] = place(first + k);
      __builtin_prefetch(&order[places[k]], 1);
    }
    for (std::uint64_t k = 0; k < size; ++k) step(first + k, places[k]);
  }
}

/// Index: an unsigned type that holds each number below `count`.
template <class Index>
std::vector<Index> permutation(std::uint64_t count, std::uint64_t seed) {
  std::vector<Index> order(count);
  // torch keeps 32 bits of the seed.
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  if (count < inside_out_from) {
    std::iota(order.begin(), order.end(), Index{0});
    for_each_place(
        order, [&](std::uint64_t i) { return i + draw() % (count - i); },
        [&](std::uint64_t i, std::uint64_t place) { std::swap(order[i], order[place]); });
    return order;
  }
  for_each_place(
      order,
      [&](std::uint64_t i) {
        const std::uint64_t high = draw();
        return (high << 32 | draw()) % (i + 1);
      },
      [&](std::uint64_t i, std::uint64_t place) {
        order[i] = order[place];
        order[place] = static_cast<Index>(i);
      });
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
