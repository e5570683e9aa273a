#include "runtime/tensor/copy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// The life of a copy: the tensor's dimensions are reduced to as few as describe the same places
// (`Places`); the last of them is the row. A walk (`for_each_row`) begins in the middle of a row if
// it must, and gives one row after the other, or what of it is asked for, to the copying itself,
// which is one memcpy where the row has no gaps.

namespace muster::runtime {
namespace {

constexpr std::size_t dimensions_max = 64;  // as `validate` says

/// Where the elements are: dimensions of more than one element, merged where one goes on where the
/// next one ends. Strides are in bytes.
struct Places {
  std::size_t count = 0;
  std::array<std::uint64_t, dimensions_max> sizes;
  std::array<std::int64_t, dimensions_max> strides;
};

Places places_of(const TensorView& tensor) {
  const std::int64_t bytes = tensor.dtype.byte_count();
  Places places;
  std::int64_t contiguous = 1;  // the stride of a contiguous tensor
  for (std::size_t index = tensor.shape.size(); index-- > 0;) {
    const std::int64_t size = tensor.shape[index];
    const std::int64_t stride = tensor.strides.empty() ? contiguous : tensor.strides[index];
    contiguous *= size;
    if (size == 1) continue;
    // From the last dimension to the first: `count - 1` is the one behind this one.
    if (places.count > 0) {
      const std::size_t behind = places.count - 1;
      const auto row_bytes = static_cast<std::uint64_t>(places.strides[behind]);
      if (static_cast<std::uint64_t>(stride * bytes) == places.sizes[behind] * row_bytes) {
        places.sizes[behind] *= static_cast<std::uint64_t>(size);
        continue;
      }
    }
    places.sizes[places.count] = static_cast<std::uint64_t>(size);
    places.strides[places.count] = stride * bytes;
    ++places.count;
  }
  if (places.count == 0) {
    places.sizes[0] = 1;
    places.strides[0] = bytes;
    places.count = 1;
  }
  return places;
}

/// Calls `copy(offset of the row's first element, count, stride)` for each row of the elements.
template <class Copy>
void for_each_row(const Places& places, std::uint64_t first, std::uint64_t count, Copy copy) {
  std::array<std::uint64_t, dimensions_max> at;
  std::int64_t offset = 0;
  std::uint64_t rest = first;
  for (std::size_t index = 0; index < places.count; ++index) {
    at[index] = rest % places.sizes[index];
    rest /= places.sizes[index];
    offset += static_cast<std::int64_t>(at[index]) * places.strides[index];
  }
  while (count > 0) {
    const std::uint64_t row = std::min(count, places.sizes[0] - at[0]);
    copy(offset, row, places.strides[0]);
    count -= row;
    if (count == 0) return;
    offset -= static_cast<std::int64_t>(at[0]) * places.strides[0];
    at[0] = 0;
    for (std::size_t index = 1; index < places.count; ++index) {
      if (at[index] + 1 < places.sizes[index]) {
        ++at[index];
        offset += places.strides[index];
        break;
      }
      offset -= static_cast<std::int64_t>(at[index]) * places.strides[index];
      at[index] = 0;
    }
  }
}

/// memcpy, but where that is ten times slower on some processors: with large sizes it takes an
/// instruction that copies any length, which stalls if the bytes go, seen modulo a page, to less
/// than a line ahead of where they come from. Memory of malloc is so seen from the begin of a page.
/// Small pieces are copied by other instructions.
void copy_bytes(char* to, const char* from, std::uint64_t bytes) {
  constexpr std::uintptr_t page_bytes = 4096;
  constexpr std::uintptr_t line_bytes = 64;
  constexpr std::uint64_t piece_bytes = 2048;
  const std::uintptr_t ahead =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page_bytes;
  const std::uint64_t at_once = ahead > 0 && ahead < line_bytes ? piece_bytes : bytes;
  for (std::uint64_t done = 0; done < bytes; done += at_once)
    std::memcpy(to + done, from + done, static_cast<std::size_t>(std::min(at_once, bytes - done)));
}

/// Copies elements of so many bytes one by one. A constant size makes each memcpy a move.
template <std::size_t bytes>
void copy_elements(char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
                   std::uint64_t count) {
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto number = static_cast<std::int64_t>(index);
    std::memcpy(to + number * to_step, from + number * from_step, bytes);
  }
}

void copy_row(char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
              std::uint64_t count, std::int64_t bytes) {
  if (to_step == bytes && from_step == bytes) {
    copy_bytes(to, from, count * static_cast<std::uint64_t>(bytes));
    return;
  }
  switch (bytes) {
    case 1: return copy_elements<1>(to, to_step, from, from_step, count);
    case 2: return copy_elements<2>(to, to_step, from, from_step, count);
    case 4: return copy_elements<4>(to, to_step, from, from_step, count);
    case 8: return copy_elements<8>(to, to_step, from, from_step, count);
    case 16: return copy_elements<16>(to, to_step, from, from_step, count);
    default: break;
  }
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto number = static_cast<std::int64_t>(index);
    std::memcpy(to + number * to_step, from + number * from_step, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

char* first_element(const TensorView& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

void pack(void* to, const TensorView& from, std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  const std::int64_t bytes = from.dtype.byte_count();
  char* out = static_cast<char*>(to);
  const char* const begin = first_element(from);
  const auto copy = [&](std::int64_t offset, std::uint64_t row, std::int64_t stride) {
    // A row of one element has no stride that matters.
    copy_row(out, bytes, begin + offset, row == 1 ? bytes : stride, row, bytes);
    out += row * static_cast<std::uint64_t>(bytes);
  };
  for_each_row(places_of(from), first, count, copy);
}

void unpack(const TensorView& to, const void* from, std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  const std::int64_t bytes = to.dtype.byte_count();
  const char* in = static_cast<const char*>(from);
  char* const begin = first_element(to);
  const auto copy = [&](std::int64_t offset, std::uint64_t row, std::int64_t stride) {
    copy_row(begin + offset, row == 1 ? bytes : stride, in, bytes, row, bytes);
    in += row * static_cast<std::uint64_t>(bytes);
  };
  for_each_row(places_of(to), first, count, copy);
}

bool overlaps_itself(const TensorView& tensor) {
  if (tensor.strides.empty() || tensor.element_count() < 2) return false;
  struct Dimension {
    std::uint64_t stride = 0;
    std::uint64_t size = 0;
  };
  std::array<Dimension, dimensions_max> dimensions;
  std::size_t count = 0;
  for (std::size_t index = 0; index < tensor.shape.size(); ++index) {
    if (tensor.shape[index] == 1) continue;
    dimensions[count].stride = static_cast<std::uint64_t>(std::abs(tensor.strides[index]));
    dimensions[count].size = static_cast<std::uint64_t>(tensor.shape[index]);
    ++count;
  }
  std::sort(dimensions.begin(), dimensions.begin() + count,
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  // Elements that differ in dimensions of smaller strides are at most `extent` apart. A stride
  // above that leaves them behind; one that is not may still miss them all, but to know that is as
  // hard as a problem of whole numbers in many unknowns, and no host makes such tensors.
  std::uint64_t extent = 0;
  for (std::size_t index = 0; index < count; ++index) {
    if (dimensions[index].stride <= extent) return true;
    extent += (dimensions[index].size - 1) * dimensions[index].stride;
  }
  return false;
}

}  // namespace muster::runtime
