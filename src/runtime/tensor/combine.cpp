#include "runtime/tensor/combine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>

#include "runtime/tensor/small_floats.h"

// The life of a call: `combiner_of` finds the function for the type and the operation. It takes the
// elements block by block: the first two sources are combined into numbers of this function's own,
// the others one after the other into these, and the result is written to `to`. So `to` may be a
// source, although no loop has to expect that what it writes is what it reads.
//
// Each loop has a constant length, since a compiler that optimizes moderately makes vectors of such
// loops alone. What does not fill a block is copied to memory that does.
//
// An element's bits do not depend on its place: each is combined by the same operations in the same
// order, and these have one result, but for a nan. Which of two it is of a + b depends on the order
// in which the compiler gives them to the processor, and its sign on the kind of processor. So
// every nan becomes the same one at the end.

namespace muster::runtime {
namespace {

constexpr std::size_t block_bytes = 1024;  // of numbers; several sources' fit the fastest cache

// Kinds of elements: what their memory holds (Element), in what they are combined (Number).

/// Integers, combined as unsigned ones, which wrap around, and compared as what they are.
template <class Integer>
struct IntegerKind {
  using Element = Integer;
  using Number = Integer;
  static constexpr bool is_floating = false;
  static Number number(Element element) { return element; }
  static Element element(Number number) { return number; }
};

template <class Floating>
struct FloatingKind {
  using Element = Floating;
  using Number = Floating;
  static constexpr bool is_floating = true;
  static Number number(Element element) { return element; }
  static Element element(Number number) {
    return number != number ? std::numeric_limits<Number>::quiet_NaN() : number;
  }
};

template <class Small>
struct SmallFloatKind {
  using Element = typename Small::Bits;
  using Number = float;
  static constexpr bool is_floating = true;
  static Number number(Element element) { return Small::wide(element); }
  static Element element(Number number) { return Small::narrow(number); }
};

/// Any byte but zero is true.
struct BoolKind {
  using Element = std::uint8_t;
  using Number = std::uint8_t;
  static constexpr bool is_floating = false;
  static Number number(Element element) { return element != 0 ? 1 : 0; }
  static Element element(Number number) { return number; }
};

/// No shorter than unsigned int: shorter ones would become signed again where they are multiplied.
template <class Integer>
using Wrapping = std::conditional_t<sizeof(Integer) <= 4, std::uint32_t, std::uint64_t>;

template <class Number, ReduceOp operation>
Number both(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) {
    if constexpr (operation == ReduceOp::product) return a * b;
    // A nan compares with nothing, itself included.
    if constexpr (operation == ReduceOp::max) return ((a > b) | (a != a)) ? a : b;
    if constexpr (operation == ReduceOp::min) return ((a < b) | (a != a)) ? a : b;
    return a + b;
  } else {
    using Wide = Wrapping<Number>;
    if constexpr (operation == ReduceOp::max) return a > b ? a : b;
    if constexpr (operation == ReduceOp::min) return a < b ? a : b;
    const auto wide_a = static_cast<Wide>(a);
    const auto wide_b = static_cast<Wide>(b);
    if constexpr (operation == ReduceOp::product) return static_cast<Number>(wide_a * wide_b);
    if constexpr (operation == ReduceOp::bit_and) return static_cast<Number>(wide_a & wide_b);
    if constexpr (operation == ReduceOp::bit_or) return static_cast<Number>(wide_a | wide_b);
    if constexpr (operation == ReduceOp::bit_xor) return static_cast<Number>(wide_a ^ wide_b);
    return static_cast<Number>(wide_a + wide_b);
  }
}

/// What is done with the elements of one block. All memory is the block's, at any address.
template <class Kind, ReduceOp operation>
struct Block {
  using Element = typename Kind::Element;
  using Number = typename Kind::Number;
  static constexpr std::size_t count = block_bytes / sizeof(Number);
  static constexpr std::size_t bytes = count * sizeof(Element);

  static Number number(const char* elements, std::size_t index) {
    Element element;
    std::memcpy(&element, elements + index * sizeof element, sizeof element);
    return Kind::number(element);
  }

  void begin(const char* __restrict first, const char* __restrict second) {
    Number* const __restrict to = numbers.data();
    for (std::size_t index = 0; index < count; ++index) {
      to[index] = both<Number, operation>(number(first, index), number(second, index));
    }
  }

  void go_on(const char* __restrict source) {
    Number* const __restrict to = numbers.data();
    for (std::size_t index = 0; index < count; ++index) {
      to[index] = both<Number, operation>(to[index], number(source, index));
    }
  }

  void end(char* __restrict to, std::size_t sources_count) {
    if constexpr (operation == ReduceOp::average) {
      const auto divisor = static_cast<Number>(sources_count);
      for (std::size_t index = 0; index < count; ++index) numbers[index] /= divisor;
    }
    for (std::size_t index = 0; index < count; ++index) {
      const Element element = Kind::element(numbers[index]);
      std::memcpy(to + index * sizeof element, &element, sizeof element);
    }
  }

  alignas(64) std::array<Number, count> numbers;
};

using Sources = Span<const void* const>;

template <class Kind, ReduceOp operation>
void combine_elements(char* to, Sources sources, std::uint64_t count) {
  using OneBlock = Block<Kind, operation>;
  OneBlock block;
  const auto source = [&](std::size_t number, std::uint64_t offset) {
    return static_cast<const char*>(sources[number]) + offset;
  };
  const std::uint64_t bytes = count * sizeof(typename Kind::Element);
  const std::uint64_t whole = bytes - bytes % OneBlock::bytes;
  for (std::uint64_t offset = 0; offset < whole; offset += OneBlock::bytes) {
    block.begin(source(0, offset), source(1, offset));
    for (std::size_t number = 2; number < sources.size(); ++number) {
      block.go_on(source(number, offset));
    }
    block.end(to + offset, sources.size());
  }
  const auto rest = static_cast<std::size_t>(bytes - whole);
  if (rest == 0) return;
  std::array<char, OneBlock::bytes> first{};
  std::array<char, OneBlock::bytes> next{};
  std::memcpy(first.data(), source(0, whole), rest);
  std::memcpy(next.data(), source(1, whole), rest);
  block.begin(first.data(), next.data());
  for (std::size_t number = 2; number < sources.size(); ++number) {
    std::memcpy(next.data(), source(number, whole), rest);
    block.go_on(next.data());
  }
  block.end(first.data(), sources.size());
  std::memcpy(to + whole, first.data(), rest);
}

using Combiner = void (*)(char* to, Sources sources, std::uint64_t count);

/// null: it has no meaning.
template <class Kind>
Combiner combiner_of(ReduceOp operation) {
  constexpr bool is_bool = std::is_same_v<Kind, BoolKind>;
  switch (operation) {
    case ReduceOp::max: return combine_elements<Kind, ReduceOp::max>;
    case ReduceOp::min: return combine_elements<Kind, ReduceOp::min>;
    case ReduceOp::sum:
      if constexpr (!is_bool) return combine_elements<Kind, ReduceOp::sum>;
      break;
    case ReduceOp::product:
      if constexpr (!is_bool) return combine_elements<Kind, ReduceOp::product>;
      break;
    case ReduceOp::average:
      if constexpr (Kind::is_floating) return combine_elements<Kind, ReduceOp::average>;
      break;
    case ReduceOp::bit_and:
      if constexpr (!Kind::is_floating) return combine_elements<Kind, ReduceOp::bit_and>;
      break;
    case ReduceOp::bit_or:
      if constexpr (!Kind::is_floating) return combine_elements<Kind, ReduceOp::bit_or>;
      break;
    case ReduceOp::bit_xor:
      if constexpr (!Kind::is_floating) return combine_elements<Kind, ReduceOp::bit_xor>;
      break;
  }
  return nullptr;
}

struct KindOfElements {
  Dtype dtype;
  Combiner (*combiner_of)(ReduceOp operation);
};

constexpr KindOfElements kinds_of_elements[] = {
    {dtype::int8, combiner_of<IntegerKind<std::int8_t>>},
    {dtype::int16, combiner_of<IntegerKind<std::int16_t>>},
    {dtype::int32, combiner_of<IntegerKind<std::int32_t>>},
    {dtype::int64, combiner_of<IntegerKind<std::int64_t>>},
    {dtype::uint8, combiner_of<IntegerKind<std::uint8_t>>},
    {dtype::uint16, combiner_of<IntegerKind<std::uint16_t>>},
    {dtype::uint32, combiner_of<IntegerKind<std::uint32_t>>},
    {dtype::uint64, combiner_of<IntegerKind<std::uint64_t>>},
    {dtype::float16, combiner_of<SmallFloatKind<Float16>>},
    {dtype::float32, combiner_of<FloatingKind<float>>},
    {dtype::float64, combiner_of<FloatingKind<double>>},
    {dtype::bfloat16, combiner_of<SmallFloatKind<Bfloat16>>},
    {dtype::float8_e4m3fn, combiner_of<SmallFloatKind<Float8E4m3fn>>},
    {dtype::float8_e5m2, combiner_of<SmallFloatKind<Float8E5m2>>},
    {dtype::boolean, combiner_of<BoolKind>},
};

const KindOfElements* kind_of_elements(Dtype dtype) {
  const auto* const found =
      std::find_if(std::begin(kinds_of_elements), std::end(kinds_of_elements),
                   [&](const KindOfElements& kind) { return kind.dtype == dtype; });
  return found == std::end(kinds_of_elements) ? nullptr : found;
}

/// empty: it is no operation.
std::string_view name_of_operation(ReduceOp operation) {
  switch (operation) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::product: return "product";
    case ReduceOp::max: return "max";
    case ReduceOp::min: return "min";
    case ReduceOp::average: return "average";
    case ReduceOp::bit_and: return "bit_and";
    case ReduceOp::bit_or: return "bit_or";
    case ReduceOp::bit_xor: return "bit_xor";
  }
  return {};
}

}  // namespace

std::optional<std::string> refusal_of(Dtype dtype, ReduceOp operation) {
  const std::string_view name = name_of_operation(operation);
  if (name.empty()) {
    return "operation " + std::to_string(static_cast<int>(operation)) + " is not a ReduceOp";
  }
  const KindOfElements* const kind = kind_of_elements(dtype);
  if (kind == nullptr) {
    return to_string(dtype) +
           " has no reductions: convert the tensor to a type of integers or floating-point numbers";
  }
  if (kind->combiner_of(operation) != nullptr) return std::nullopt;
  const std::string what = to_string(dtype) + " has no " + std::string(name) + ": ";
  if (dtype.code == DtypeCode::boolean) {
    return what + "of bools there are max, min, bit_and, bit_or and bit_xor";
  }
  if (operation == ReduceOp::average) return what + "convert the tensor to a floating-point type";
  return what + "operations on bits are for integers and bools";
}

void combine(void* to, Span<const void* const> sources, std::uint64_t count, Dtype dtype,
             ReduceOp operation) {
  const KindOfElements* const kind = kind_of_elements(dtype);
  if (kind == nullptr || sources.empty() || count == 0) return;
  if (sources.size() == 1) {
    std::memmove(to, sources[0], static_cast<std::size_t>(count * dtype.byte_count()));
    return;
  }
  const Combiner combiner = kind->combiner_of(operation);
  if (combiner != nullptr) combiner(static_cast<char*>(to), sources, count);
}

}  // namespace muster::runtime
