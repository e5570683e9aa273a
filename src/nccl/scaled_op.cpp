#include "nccl/scaled_op.h"

#include <array>
#include <cstring>

#include "communicator/float16.h"
#include "communicator/float8.h"
#include "nccl/enqueue.h"
#include "nccl/functions.h"

namespace muster::nccl_internal {
namespace {

/// An element of any type.
using ElementBytes = std::array<char, sizeof(double)>;

template <class Element>
ElementBytes bytes_of(Element element) {
  ElementBytes bytes{};
  std::memcpy(bytes.data(), &element, sizeof element);
  return bytes;
}

ElementBytes rounded_to(DataType type, double factor) {
  const auto single = static_cast<float>(factor);
  switch (type) {
    case DataType::float16: return bytes_of(communicator::to_float16(single));
    case DataType::bfloat16: return bytes_of(communicator::to_bfloat16(single));
    case DataType::float8_e4m3: return bytes_of(communicator::to_float8_e4m3(single));
    case DataType::float8_e5m2: return bytes_of(communicator::to_float8_e5m2(single));
    case DataType::float64: return bytes_of(factor);
    default: return bytes_of(single);
  }
}

int create(const nccl::Functions& nccl, nccl::Handle handle, DataType type, double factor,
           int& number) {
  constexpr int host_immediate = 1;  // the factor is read before the function returns
  ElementBytes element = rounded_to(type, factor);
  return nccl.red_op_create_pre_mul_sum(&number, element.data(), number_of(type), host_immediate,
                                        handle);
}

}  // namespace

ScaledOp::ScaledOp(const nccl::Functions& nccl, nccl::Handle handle, DataType type, double factor)
    : nccl_(nccl), handle_(handle), result_(create(nccl, handle, type, factor, number_)) {}

ScaledOp::~ScaledOp() {
  // NCCL refuses only what it does not know.
  if (result_ == success) nccl_.red_op_destroy(number_, handle_);
}

}  // namespace muster::nccl_internal
