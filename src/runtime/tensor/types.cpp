#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "muster/tensor.h"

MUSTER_BEGIN_NAMESPACE

namespace {

constexpr std::size_t tensor_dimensions_max = 64;
constexpr std::uint64_t tensor_bytes_max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t tensor_alignment = 64;

/// A name for numbers of any width, such as "int" for "int32"; empty: the code has none.
std::string_view stem_of(DtypeCode code) {
  switch (code) {
    case DtypeCode::signed_integer: return "int";
    case DtypeCode::unsigned_integer: return "uint";
    case DtypeCode::floating: return "float";
    case DtypeCode::opaque: return "opaque";
    case DtypeCode::bfloat: return "bfloat";
    case DtypeCode::complex: return "complex";
    default: return {};
  }
}

struct FixedName {
  std::string_view name;
  std::uint8_t bits = 0;
};

/// Of a type that has one width; empty: the code has none.
FixedName fixed_name_of(DtypeCode code) {
  switch (code) {
    case DtypeCode::boolean: return {"bool", 8};
    case DtypeCode::float8_e3m4: return {"float8_e3m4", 8};
    case DtypeCode::float8_e4m3: return {"float8_e4m3", 8};
    case DtypeCode::float8_e4m3b11fnuz: return {"float8_e4m3b11fnuz", 8};
    case DtypeCode::float8_e4m3fn: return {"float8_e4m3fn", 8};
    case DtypeCode::float8_e4m3fnuz: return {"float8_e4m3fnuz", 8};
    case DtypeCode::float8_e5m2: return {"float8_e5m2", 8};
    case DtypeCode::float8_e5m2fnuz: return {"float8_e5m2fnuz", 8};
    case DtypeCode::float8_e8m0fnu: return {"float8_e8m0fnu", 8};
    case DtypeCode::float6_e2m3fn: return {"float6_e2m3fn", 6};
    case DtypeCode::float6_e3m2fn: return {"float6_e3m2fn", 6};
    case DtypeCode::float4_e2m1fn: return {"float4_e2m1fn", 4};
    default: return {};
  }
}

std::string_view name_of_device(DeviceType type) {
  switch (type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "cuda";
    case DeviceType::cuda_host: return "cuda_host";
    case DeviceType::rocm: return "rocm";
    case DeviceType::rocm_host: return "rocm_host";
    case DeviceType::cuda_managed: return "cuda_managed";
  }
  return {};
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(number);
  }
  return text + "]";
}

Error bad_tensor(std::string detail) {
  return base::failure(ErrorCode::invalid_argument, "tensor: " + std::move(detail));
}

std::optional<Error> refusal_of_dtype(Dtype dtype) {
  if (dtype.byte_count() > 0) return std::nullopt;
  if (dtype.bits == 0 || dtype.lanes == 0) {
    return bad_tensor("its elements have no bits: give a dtype of muster::dtype");
  }
  return bad_tensor("an element of " + to_string(dtype) +
                    " does not end at a byte; exchange it as uint8");
}

/// errors  there is none: too large, or a size is negative
Result<std::uint64_t> byte_count_of(Dtype dtype, const std::vector<std::int64_t>& shape) {
  if (shape.size() > tensor_dimensions_max) {
    return bad_tensor("it has " + std::to_string(shape.size()) + " dimensions, at most " +
                      std::to_string(tensor_dimensions_max) + " are supported");
  }
  bool is_empty = false;
  bool is_too_large = false;
  std::uint64_t bytes = dtype.byte_count();
  for (const std::int64_t size : shape) {
    if (size < 0) return bad_tensor("a size of its shape " + list_of(shape) + " is negative");
    if (size == 0) is_empty = true;
    is_too_large = is_too_large ||
                   __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes) ||
                   bytes > tensor_bytes_max;
  }
  if (is_empty) return 0;
  if (is_too_large) {
    return bad_tensor("a shape of " + list_of(shape) + " of " + to_string(dtype) +
                      " has more than 2^63-1 bytes");
  }
  return bytes;
}

/// Where elements are beside the first one, in bytes.
struct Reach {
  std::int64_t below = 0;  ///< not above zero
  std::int64_t above = 0;
};

/// nothing: further than 2^63-1 bytes.
std::optional<Reach> reach_of(const TensorView& tensor) {
  Reach reach;
  const std::int64_t bytes = tensor.dtype.byte_count();
  for (std::size_t index = 0; index < tensor.strides.size(); ++index) {
    const std::int64_t steps = tensor.shape[index] - 1;
    if (steps == 0) continue;
    std::int64_t distance = 0;
    if (__builtin_mul_overflow(tensor.strides[index], bytes, &distance)) return std::nullopt;
    if (__builtin_mul_overflow(distance, steps, &distance)) return std::nullopt;
    std::int64_t& end = distance < 0 ? reach.below : reach.above;
    if (__builtin_add_overflow(end, distance, &end)) return std::nullopt;
  }
  if (__builtin_add_overflow(reach.above, bytes, &reach.above)) return std::nullopt;
  return reach;
}

/// Whether all elements are at addresses that there are.
bool has_addresses(const TensorView& tensor, const Reach& reach) {
  std::uint64_t first = 0;
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (__builtin_add_overflow(std::uint64_t{data}, tensor.byte_offset, &first)) return false;
  std::uint64_t end = 0;
  if (__builtin_add_overflow(first, static_cast<std::uint64_t>(reach.above), &end)) return false;
  return first >= std::uint64_t{0} - static_cast<std::uint64_t>(reach.below);
}

}  // namespace

std::string to_string(Device device) {
  const std::string_view name = name_of_device(device.type);
  const std::string index = std::to_string(device.index);
  if (name.empty()) {
    return "device " + std::to_string(static_cast<std::int32_t>(device.type)) + ":" + index;
  }
  if (device.type == DeviceType::cpu && device.index == 0) return std::string(name);
  return std::string(name) + ":" + index;
}

std::string to_string(Dtype dtype) {
  const std::string_view stem = stem_of(dtype.code);
  const FixedName fixed = fixed_name_of(dtype.code);
  const std::string bits = std::to_string(dtype.bits);
  std::string text;
  if (!stem.empty()) {
    text = std::string(stem) + bits;
  } else if (!fixed.name.empty()) {
    text = std::string(fixed.name) + (dtype.bits == fixed.bits ? "" : ":" + bits);
  } else {
    text = "dtype " + std::to_string(static_cast<unsigned>(dtype.code)) + ":" + bits;
  }
  return dtype.lanes == 1 ? text : text + "x" + std::to_string(dtype.lanes);
}

std::uint64_t TensorView::element_count() const {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

std::uint64_t TensorView::byte_count() const { return element_count() * dtype.byte_count(); }

bool TensorView::is_contiguous() const {
  if (strides.empty()) return true;
  if (strides.size() != shape.size()) return false;
  if (element_count() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t index = shape.size(); index-- > 0;) {
    if (shape[index] == 1) continue;  // its stride leads nowhere
    if (strides[index] != expected) return false;
    if (__builtin_mul_overflow(expected, shape[index], &expected)) return false;
  }
  return true;
}

std::string to_string(const TensorView& tensor) {
  return to_string(tensor.dtype) + " " + list_of(tensor.shape) + " on " + to_string(tensor.device);
}

Result<void> validate(const TensorView& tensor) {
  if (auto refused = refusal_of_dtype(tensor.dtype)) return *std::move(refused);
  const auto bytes = byte_count_of(tensor.dtype, tensor.shape);
  if (!bytes) return bytes.error();
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    return bad_tensor("it has " + std::to_string(tensor.strides.size()) + " strides, but " +
                      std::to_string(tensor.shape.size()) +
                      " dimensions: give one for each, or none");
  }
  if (*bytes == 0) return {};
  if (tensor.data == nullptr) {
    return bad_tensor("its memory is null, but it has " + std::to_string(*bytes) + " bytes");
  }
  auto reach = reach_of(tensor);
  if (reach && tensor.strides.empty()) reach->above = static_cast<std::int64_t>(*bytes);
  // What `data` of another device is, that device knows.
  if (reach && (!tensor.device.is_host() || has_addresses(tensor, *reach))) return {};
  return bad_tensor("with the strides " + list_of(tensor.strides) + " and its offset, its shape " +
                    list_of(tensor.shape) + " reaches beyond all memory");
}

Result<Tensor> Tensor::make(Dtype dtype, std::vector<std::int64_t> shape) {
  const auto refused = [](Error error) {
    error.operation = "Tensor::make";
    error.decided_by = "client";
    return error;
  };
  if (auto error = refusal_of_dtype(dtype)) return refused(*std::move(error));
  const auto bytes = byte_count_of(dtype, shape);
  if (!bytes) return refused(bytes.error());
  TensorView view;
  view.dtype = dtype;
  view.shape = std::move(shape);
  if (*bytes == 0) return Tensor(std::move(view), nullptr);
  const auto free = [](void* memory) {
    ::operator delete(memory, std::align_val_t(tensor_alignment));
  };
  view.data = ::operator new(static_cast<std::size_t>(*bytes), std::align_val_t(tensor_alignment),
                             std::nothrow);
  if (view.data != nullptr) {
    try {
      // If there is no memory for the count of owners, this frees the tensor's.
      std::shared_ptr<void> owner(view.data, free);
      return Tensor(std::move(view), std::move(owner));
    } catch (const std::bad_alloc&) {
    }
  }
  Error error =
      base::failure(ErrorCode::resource_exhausted, "there is no memory for " + to_string(view) +
                                                       ", " + std::to_string(*bytes) + " bytes");
  error.actual = *bytes;
  return refused(std::move(error));
}

std::string_view name_of(TensorWay way) {
  switch (way) {
    case TensorWay::automatic: return "automatic";
    case TensorWay::store: return "store";
    case TensorWay::shared_memory: return "shared_memory";
    case TensorWay::gloo: return "gloo";
    case TensorWay::nccl: return "nccl";
  }
  return "unknown";
}

MUSTER_END_NAMESPACE
