#include "runtime/tensor/by_steps.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "runtime/tensor/combine.h"
#include "runtime/tensor/copy.h"

// A large tensor goes chunk by chunk: as many elements as a part holds. Each algorithm is a row of
// steps; between two exchanges a rank reads the parts of the last step, and writes its part of the
// next one.

namespace muster::runtime {

namespace {

/// Up to so many bytes a rank combines all by itself, which takes a step less than sharing the
/// work.
constexpr std::uint64_t alone_bytes_max = std::uint64_t{32} << 10;

std::uint64_t chunk_elements(const Steps& steps, Dtype dtype) {
  return steps.part_bytes_max() / dtype.byte_count();
}

const void* behind(const void* from, std::uint64_t bytes) {
  return static_cast<const char*>(from) + bytes;
}

Result<void> step(TensorCall& call, Steps& steps, std::uint64_t bytes) {
  auto done = steps.exchange(static_cast<std::size_t>(bytes), call.deadline());
  if (!done) return call.about(std::move(done).error());
  return {};
}

Error cut_short(const TensorCall& call, int rank) {
  Error error = base::failure(ErrorCode::protocol_error, "it gave fewer bytes than its tensor has");
  error.ranks.emplace_back().rank = rank;
  error.rank_ranges = {{rank, rank}};
  return call.about(std::move(error));
}

/// Of `count` elements those that a rank combines for all; where slices meet, no line of the cache
/// is written by two.
std::uint64_t slice_begin(std::uint64_t count, int rank, int world_size,
                          std::uint64_t element_bytes) {
  const auto ranks = static_cast<std::uint64_t>(world_size);
  if (rank == world_size) return count;
  const std::uint64_t begin = count * static_cast<std::uint64_t>(rank) / ranks;
  const std::uint64_t line = std::max<std::uint64_t>(1, 64 / element_bytes);
  return begin / line * line;
}

}  // namespace

Result<Sources> parts_of(const TensorCall& call, const Steps& steps, std::uint64_t bytes) {
  Sources sources;
  for (int rank = 0; rank < call.world_size(); ++rank) {
    const std::string_view part = steps.part(rank);
    if (part.size() < bytes) return cut_short(call, rank);
    sources.push_back(part.data());
  }
  return sources;
}

void combine_here(const Sources& sources, const TensorView& tensor, std::uint64_t first,
                  std::uint64_t count, ReduceOp operation) {
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  if (tensor.is_contiguous()) {
    combine(first_element(tensor) + first * element_bytes, sources, count, tensor.dtype, operation);
    return;
  }
  constexpr std::uint64_t block_bytes = std::uint64_t{16} << 10;
  std::vector<char> block(block_bytes);
  const std::uint64_t block_elements = block_bytes / element_bytes;
  for (std::uint64_t done = 0; done < count; done += block_elements) {
    const std::uint64_t now = std::min(block_elements, count - done);
    Sources here;
    for (const void* const source : sources) here.push_back(behind(source, done * element_bytes));
    combine(block.data(), here, now, tensor.dtype, operation);
    unpack(tensor, block.data(), first + done, now);
  }
}

Result<void> combine_sources(TensorCall& call, Steps& steps, const Sources& sources,
                             const TensorView& tensor, std::uint64_t first, std::uint64_t count,
                             ReduceOp operation) {
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  if (!steps.is_shared() || count * element_bytes <= alone_bytes_max) {
    combine_here(sources, tensor, first, count, operation);
    return {};
  }
  const auto begin_of = [&](int rank) {
    return slice_begin(count, rank, call.world_size(), element_bytes);
  };
  const std::uint64_t begin = begin_of(call.rank());
  const std::uint64_t own_count = begin_of(call.rank() + 1) - begin;
  Sources slices;
  for (const void* const source : sources) slices.push_back(behind(source, begin * element_bytes));
  combine(steps.own_part(static_cast<std::size_t>(own_count * element_bytes)), slices, own_count,
          tensor.dtype, operation);
  if (auto stepped = step(call, steps, own_count * element_bytes); !stepped) return stepped;
  for (int rank = 0; rank < call.world_size(); ++rank) {
    const std::uint64_t its_begin = begin_of(rank);
    const std::uint64_t its_count = begin_of(rank + 1) - its_begin;
    const std::string_view part = steps.part(rank);
    if (part.size() < its_count * element_bytes) return cut_short(call, rank);
    unpack(tensor, part.data(), first + its_begin, its_count);
  }
  return {};
}

Result<void> all_reduce_by(TensorCall& call, Steps& steps, const TensorView& tensor,
                           ReduceOp operation) {
  const std::uint64_t all = tensor.element_count();
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  const std::uint64_t chunk = chunk_elements(steps, tensor.dtype);
  for (std::uint64_t first = 0; first < all; first += chunk) {
    const std::uint64_t count = std::min(chunk, all - first);
    pack(steps.own_part(static_cast<std::size_t>(count * element_bytes)), tensor, first, count);
    if (auto stepped = step(call, steps, count * element_bytes); !stepped) return stepped;
    auto sources = parts_of(call, steps, count * element_bytes);
    if (!sources) return std::move(sources).error();
    auto combined = combine_sources(call, steps, *sources, tensor, first, count, operation);
    if (!combined) return combined;
  }
  return {};
}

Result<void> broadcast_by(TensorCall& call, Steps& steps, const TensorView& tensor, int root) {
  const bool is_root = call.rank() == root;
  const std::uint64_t all = tensor.element_count();
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  const std::uint64_t chunk = chunk_elements(steps, tensor.dtype);
  for (std::uint64_t first = 0; first < all; first += chunk) {
    const std::uint64_t count = std::min(chunk, all - first);
    const std::uint64_t bytes = count * element_bytes;
    if (is_root) pack(steps.own_part(static_cast<std::size_t>(bytes)), tensor, first, count);
    if (auto stepped = step(call, steps, is_root ? bytes : 0); !stepped) return stepped;
    if (is_root) continue;
    if (steps.part(root).size() < bytes) return cut_short(call, root);
    unpack(tensor, steps.part(root).data(), first, count);
  }
  return {};
}

Result<void> all_gather_by(TensorCall& call, Steps& steps, const TensorView& tensor,
                           const std::vector<Tensor>& all) {
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  const std::uint64_t chunk = chunk_elements(steps, tensor.dtype);
  std::uint64_t most = 0;
  for (const Tensor& of_rank : all) most = std::max(most, of_rank.view().element_count());
  for (std::uint64_t first = 0; first < most; first += chunk) {
    const auto count_of = [&](const TensorView& its) {
      const std::uint64_t elements = its.element_count();
      return elements > first ? std::min(chunk, elements - first) : 0;
    };
    // Gloo's parts are all of one size.
    const std::uint64_t part_bytes = std::min(chunk, most - first) * element_bytes;
    const std::uint64_t own = count_of(tensor);
    char* const part = steps.own_part(static_cast<std::size_t>(part_bytes));
    if (own > 0) pack(part, tensor, first, own);
    const bool is_padded =
        call.way_for(tensor.device.type, most * element_bytes) == TensorWay::gloo;
    if (auto stepped = step(call, steps, is_padded ? part_bytes : own * element_bytes); !stepped)
      return stepped;
    for (int rank = 0; rank < call.world_size(); ++rank) {
      const TensorView& its = all[static_cast<std::size_t>(rank)].view();
      const std::uint64_t count = count_of(its);
      if (count == 0) continue;
      if (steps.part(rank).size() < count * element_bytes) return cut_short(call, rank);
      unpack(its, steps.part(rank).data(), first, count);
    }
  }
  return {};
}

Result<void> reduce_scatter_by(TensorCall& call, Steps& steps, const TensorView& send,
                               const TensorView& receive, ReduceOp operation) {
  const auto ranks = static_cast<std::uint64_t>(call.world_size());
  const std::uint64_t each = receive.element_count();
  const std::uint64_t element_bytes = send.dtype.byte_count();
  const std::uint64_t chunk = std::max<std::uint64_t>(1, chunk_elements(steps, send.dtype) / ranks);
  for (std::uint64_t first = 0; first < each; first += chunk) {
    const std::uint64_t count = std::min(chunk, each - first);
    const std::uint64_t bytes = count * element_bytes;
    char* const part = steps.own_part(static_cast<std::size_t>(bytes * ranks));
    for (std::uint64_t rank = 0; rank < ranks; ++rank)
      pack(part + rank * bytes, send, rank * each + first, count);
    if (auto stepped = step(call, steps, bytes * ranks); !stepped) return stepped;
    auto sources = parts_of(call, steps, bytes * ranks);
    if (!sources) return std::move(sources).error();
    const auto own = static_cast<std::uint64_t>(call.rank());
    for (const void*& source : *sources) source = behind(source, own * bytes);
    combine_here(*sources, receive, first, count, operation);
  }
  return {};
}

}  // namespace muster::runtime
