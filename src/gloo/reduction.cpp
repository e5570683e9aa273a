#include "gloo/reduction.h"

#include <type_traits>

#include "communicator/float16.h"
#include "communicator/float8.h"

namespace muster::gloo_internal {

using communicator::of_bfloat16;
using communicator::of_float16;
using communicator::of_float8_e4m3;
using communicator::of_float8_e5m2;
using communicator::to_bfloat16;
using communicator::to_float16;
using communicator::to_float8_e4m3;
using communicator::to_float8_e5m2;

namespace {

/// An element that is reckoned with as a float.
template <class Bits, float (*of_bits)(Bits), Bits (*to_bits)(float)>
struct SmallFloat {
  Bits bits;
  explicit SmallFloat(float value) : bits(to_bits(value)) {}
  explicit operator float() const { return of_bits(bits); }
};
using Float16 = SmallFloat<std::uint16_t, of_float16, to_float16>;
using Bfloat16 = SmallFloat<std::uint16_t, of_bfloat16, to_bfloat16>;
using Float8E4M3 = SmallFloat<std::uint8_t, of_float8_e4m3, to_float8_e4m3>;
using Float8E5M2 = SmallFloat<std::uint8_t, of_float8_e5m2, to_float8_e5m2>;

/// In what elements of a type are reckoned with. Integers as unsigned ones, which wrap around; no
/// shorter than unsigned int, since shorter ones would become signed again.
template <class Element>
using Wrapping = std::conditional_t<sizeof(Element) <= 4, std::uint32_t, std::uint64_t>;
template <class Element, bool = std::is_integral_v<Element>>
struct Reckoned {
  using Type = Wrapping<Element>;
};
template <class Element>
struct Reckoned<Element, false> {
  using Type = std::conditional_t<std::is_floating_point_v<Element>, Element, float>;
};

template <class Element, ReduceOp operation>
Element combined(Element a, Element b) {
  using Number = typename Reckoned<Element>::Type;
  if constexpr (operation == ReduceOp::max || operation == ReduceOp::min) {
    using Compared = std::conditional_t<std::is_integral_v<Element>, Element, Number>;
    const bool is_less = static_cast<Compared>(a) < static_cast<Compared>(b);
    return is_less == (operation == ReduceOp::max) ? b : a;
  } else {
    const auto first = static_cast<Number>(a);
    const auto second = static_cast<Number>(b);
    if constexpr (operation == ReduceOp::product) return static_cast<Element>(first * second);
    return static_cast<Element>(first + second);
  }
}

template <class Element, ReduceOp operation>
void reduce(void* to, const void* a, const void* b, std::size_t count) {
  auto* const out = static_cast<Element*>(to);
  const auto* const first = static_cast<const Element*>(a);
  const auto* const second = static_cast<const Element*>(b);
  for (std::size_t index = 0; index < count; ++index) {
    out[index] = combined<Element, operation>(first[index], second[index]);
  }
}

template <class Element>
ReduceFunction reduce_function_for(ReduceOp operation) {
  switch (operation) {
    case ReduceOp::product: return reduce<Element, ReduceOp::product>;
    case ReduceOp::max: return reduce<Element, ReduceOp::max>;
    case ReduceOp::min: return reduce<Element, ReduceOp::min>;
    case ReduceOp::sum:
    case ReduceOp::average: break;
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor: break;  // refused before, for all communicators
  }
  return reduce<Element, ReduceOp::sum>;
}

template <class Element>
void multiply_all(void* to, const void* from, std::size_t count, double factor) {
  if constexpr (!std::is_integral_v<Element>) {
    using Number = typename Reckoned<Element>::Type;
    const auto rounded = static_cast<Number>(static_cast<Element>(static_cast<Number>(factor)));
    auto* const out = static_cast<Element*>(to);
    const auto* const in = static_cast<const Element*>(from);
    for (std::size_t index = 0; index < count; ++index) {
      out[index] = static_cast<Element>(static_cast<Number>(in[index]) * rounded);
    }
  }
}

template <class Element>
void divide_all(void* sums, std::size_t count, int parts) {
  auto* const out = static_cast<Element*>(sums);
  for (std::size_t index = 0; index < count; ++index) {
    if constexpr (std::is_integral_v<Element>) {
      // In 64 bits, of its own sign: `parts` may be more than a short type can hold.
      using Wide = std::conditional_t<std::is_signed_v<Element>, std::int64_t, std::uint64_t>;
      out[index] = static_cast<Element>(static_cast<Wide>(out[index]) / static_cast<Wide>(parts));
    } else {
      using Number = typename Reckoned<Element>::Type;
      out[index] =
          static_cast<Element>(static_cast<Number>(out[index]) / static_cast<Number>(parts));
    }
  }
}

/// Calls `work` with a null pointer to the type's elements.
template <class Work>
auto with_elements(DataType type, Work work) {
  switch (type) {
    case DataType::int8: return work(static_cast<std::int8_t*>(nullptr));
    case DataType::uint8: return work(static_cast<std::uint8_t*>(nullptr));
    case DataType::int32: return work(static_cast<std::int32_t*>(nullptr));
    case DataType::uint32: return work(static_cast<std::uint32_t*>(nullptr));
    case DataType::int64: return work(static_cast<std::int64_t*>(nullptr));
    case DataType::uint64: return work(static_cast<std::uint64_t*>(nullptr));
    case DataType::float16: return work(static_cast<Float16*>(nullptr));
    case DataType::bfloat16: return work(static_cast<Bfloat16*>(nullptr));
    case DataType::float8_e4m3: return work(static_cast<Float8E4M3*>(nullptr));
    case DataType::float8_e5m2: return work(static_cast<Float8E5M2*>(nullptr));
    case DataType::float64: return work(static_cast<double*>(nullptr));
    case DataType::float32: break;
  }
  return work(static_cast<float*>(nullptr));
}

}  // namespace

ReduceFunction reduce_function_of(DataType type, ReduceOp operation) {
  return with_elements(type, [operation](auto* elements) {
    return reduce_function_for<std::remove_pointer_t<decltype(elements)>>(operation);
  });
}

void multiply(void* to, const void* from, std::size_t count, DataType type, double factor) {
  with_elements(type, [=](auto* elements) {
    multiply_all<std::remove_pointer_t<decltype(elements)>>(to, from, count, factor);
  });
}

void divide(void* sums, std::size_t count, DataType type, int parts) {
  with_elements(type, [=](auto* elements) {
    divide_all<std::remove_pointer_t<decltype(elements)>>(sums, count, parts);
  });
}

}  // namespace muster::gloo_internal
