#pragma once

// Tensors of other libraries (torch, JAX, CuPy, NumPy, TensorFlow), by DLPack: a few structs in
// memory that all of them can make and take. Opt-in, and a header alone, but for the library
// muster-runtime that muster/tensor.h needs. It needs no dlpack.h: the structs below have the
// layout of DLPack 1.1, and of every version since 0.6. A host casts:
//
//   auto* managed = static_cast<muster::dlpack::ManagedTensor*>(
//       PyCapsule_GetPointer(capsule, "dltensor"));               // from Python
//   auto* managed = reinterpret_cast<muster::dlpack::ManagedTensor*>(at::toDLPack(tensor));
//   auto tensor = muster::dlpack::import_tensor(managed);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/result.h"
#include "muster/tensor.h"

MUSTER_BEGIN_NAMESPACE

namespace dlpack {

/// DLPackVersion. Layouts of one major version are compatible.
struct Version {
  std::uint32_t major;  ///< at byte 0
  std::uint32_t minor;  ///< at byte 4
};

/// DLDevice.
struct RawDevice {
  std::int32_t type;   ///< at byte 0: a number of DeviceType, or another one
  std::int32_t index;  ///< at byte 4
};

/// DLDataType.
struct RawDtype {
  std::uint8_t code;    ///< at byte 0: a number of DtypeCode, or another one
  std::uint8_t bits;    ///< at byte 1
  std::uint16_t lanes;  ///< at byte 2
};

/// DLTensor.
struct RawTensor {
  void* data;                     ///< at byte 0
  RawDevice device;               ///< at byte 8
  std::int32_t dimensions_count;  ///< at byte 16: ndim
  RawDtype dtype;                 ///< at byte 20
  std::int64_t* shape;            ///< at byte 24
  std::int64_t* strides;          ///< at byte 32: in elements; null: a contiguous tensor
  std::uint64_t byte_offset;      ///< at byte 40
};

/// DLManagedTensor: a tensor with its memory, which `deleter` ends. In Python's capsules
/// "dltensor".
struct ManagedTensor {
  RawTensor tensor;                        ///< at byte 0
  void* manager_context;                   ///< at byte 48: its producer's
  void (*deleter)(struct ManagedTensor*);  ///< at byte 56; null: there is nothing to do
};

/// DLManagedTensorVersioned, since DLPack 1.0. In Python's capsules "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;                                  ///< at byte 0
  void* manager_context;                            ///< at byte 8
  void (*deleter)(struct ManagedTensorVersioned*);  ///< at byte 16
  std::uint64_t flags;                              ///< at byte 24: see below
  RawTensor tensor;                                 ///< at byte 32, of this major version
};

/// Bits of ManagedTensorVersioned::flags.
inline constexpr std::uint64_t read_only = 1;  ///< the consumer may not write to it
inline constexpr std::uint64_t is_copied = 2;  ///< it is the consumer's own copy

/// What `export_versioned` says of itself, and the major version that `import_tensor` takes.
inline constexpr Version version{1, 1};

static_assert(sizeof(void*) == 8, "the layouts are those of 64-bit platforms");
static_assert(sizeof(Version) == 8 && offsetof(Version, minor) == 4);
static_assert(sizeof(RawDevice) == 8 && offsetof(RawDevice, index) == 4);
static_assert(sizeof(RawDtype) == 4 && offsetof(RawDtype, bits) == 1);
static_assert(offsetof(RawDtype, lanes) == 2);
static_assert(sizeof(RawTensor) == 48 && offsetof(RawTensor, device) == 8);
static_assert(offsetof(RawTensor, dimensions_count) == 16 && offsetof(RawTensor, dtype) == 20);
static_assert(offsetof(RawTensor, shape) == 24 && offsetof(RawTensor, strides) == 32);
static_assert(offsetof(RawTensor, byte_offset) == 40);
static_assert(sizeof(ManagedTensor) == 64 && offsetof(ManagedTensor, manager_context) == 48);
static_assert(offsetof(ManagedTensor, deleter) == 56);
static_assert(sizeof(ManagedTensorVersioned) == 80);
static_assert(offsetof(ManagedTensorVersioned, manager_context) == 8);
static_assert(offsetof(ManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(ManagedTensorVersioned, flags) == 24);
static_assert(offsetof(ManagedTensorVersioned, tensor) == 32);

namespace detail {

inline Error refused(std::string_view operation, ErrorCode code, std::string text) {
  Error error;
  error.code = code;
  error.operation = "dlpack::" + std::string(operation);
  error.decided_by = "client";
  error.detail = std::move(text);
  return error;
}

inline Error refused(std::string_view operation, Error error) {
  return refused(operation, error.code, std::move(error.detail));
}

/// Shapes are copied: so many numbers are read from memory of somebody else, and no more.
inline constexpr std::int32_t dimensions_max = 64;

inline Result<TensorView> checked_view(const RawTensor& tensor) {
  const std::int32_t count = tensor.dimensions_count;
  if (count < 0 || count > dimensions_max) {
    return refused("", ErrorCode::invalid_argument,
                   "tensor: it has " + std::to_string(count) + " dimensions, and may have 0 to " +
                       std::to_string(dimensions_max));
  }
  if (count > 0 && tensor.shape == nullptr) {
    return refused("", ErrorCode::invalid_argument, "tensor: its shape is null");
  }
  TensorView view;
  view.data = tensor.data;
  view.device = {static_cast<DeviceType>(tensor.device.type), tensor.device.index};
  view.dtype = {static_cast<DtypeCode>(tensor.dtype.code), tensor.dtype.bits, tensor.dtype.lanes};
  if (count > 0) view.shape.assign(tensor.shape, tensor.shape + count);
  if (count > 0 && tensor.strides != nullptr) {
    view.strides.assign(tensor.strides, tensor.strides + count);
  }
  view.byte_offset = tensor.byte_offset;
  if (auto valid = validate(view); !valid) return std::move(valid).error();
  return view;
}

/// Ends a tensor of another library when its last owner is gone.
struct Release {
  template <class Managed>
  void operator()(Managed* managed) const {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

template <class Managed>
Result<Tensor> taken(std::unique_ptr<Managed, Release> managed, std::uint64_t flags) {
  auto view = checked_view(managed->tensor);
  if (!view) return refused("import_tensor", std::move(view).error());
  view->is_read_only = (flags & read_only) != 0;
  return Tensor(*std::move(view), std::shared_ptr<void>(std::move(managed)));
}

/// An exported tensor with all that it points to; its consumer ends it.
template <class Managed>
struct Exported {
  explicit Exported(Tensor given) : owned(std::move(given)), shape(owned.view().shape) {
    const TensorView& view = owned.view();
    strides = view.strides;
    if (strides.empty()) {
      // Written out: DLPack 1.2 takes null no more.
      strides.resize(shape.size());
      std::uint64_t step = 1;
      for (std::size_t index = shape.size(); index-- > 0;) {
        strides[index] = static_cast<std::int64_t>(step);
        step *= static_cast<std::uint64_t>(shape[index]);
      }
    }
    managed.tensor.data = view.data;
    managed.tensor.device = {static_cast<std::int32_t>(view.device.type), view.device.index};
    managed.tensor.dimensions_count = static_cast<std::int32_t>(shape.size());
    managed.tensor.dtype = {static_cast<std::uint8_t>(view.dtype.code), view.dtype.bits,
                            view.dtype.lanes};
    managed.tensor.shape = shape.data();
    managed.tensor.strides = strides.data();
    managed.tensor.byte_offset = view.byte_offset;
    managed.manager_context = this;
    managed.deleter = [](Managed* self) { delete static_cast<Exported*>(self->manager_context); };
  }

  Tensor owned;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  Managed managed{};
};

template <class Managed>
Result<Managed*> exported(std::string_view operation, Tensor tensor) {
  if (auto valid = validate(tensor.view()); !valid) {
    return refused(operation, std::move(valid).error());
  }
  MUSTER_TRY { return &(new Exported<Managed>(std::move(tensor)))->managed; }
  MUSTER_CATCH_ALL {  // std::bad_alloc
    return refused(operation, ErrorCode::resource_exhausted, "there is no memory to describe it");
  }
}

template <class Managed>
Result<Tensor> imported(Managed* managed, std::uint64_t flags) {
  std::unique_ptr<Managed, Release> owned(managed);
  MUSTER_TRY { return taken(std::move(owned), flags); }
  MUSTER_CATCH_ALL {  // std::bad_alloc
    return refused("import_tensor", ErrorCode::resource_exhausted,
                   "there is no memory to describe it");
  }
}

}  // namespace detail

/// Views a tensor of another library, which keeps it while it is used.
///
/// errors  invalid_argument (it describes no tensor, see `validate`; or has over 64 dimensions)
inline Result<TensorView> view_of(const RawTensor& tensor) {
  MUSTER_TRY {
    auto view = detail::checked_view(tensor);
    if (!view) return detail::refused("view_of", std::move(view).error());
    return view;
  }
  MUSTER_CATCH_ALL {  // std::bad_alloc
    return detail::refused("view_of", ErrorCode::resource_exhausted,
                           "there is no memory to describe it");
  }
}

/// Takes over a tensor of another library. Its deleter is called when the Tensor and all of its
/// owners are gone, or, after an error, before this returns. The capsule that it was in must be
/// marked as used (in Python: renamed to "used_dltensor").
///
/// managed  not null; null is refused
/// returns  a tensor at the same memory, not read-only: this form cannot say that one is
/// errors   invalid_argument (it describes no tensor, see `validate`; or has over 64 dimensions),
///          resource_exhausted
/// threads  any; the deleter runs on the thread that destroys the last owner
inline Result<Tensor> import_tensor(ManagedTensor* managed) {
  if (managed == nullptr) {
    return detail::refused("import_tensor", ErrorCode::invalid_argument, "managed: null");
  }
  return detail::imported(managed, 0);
}

/// The same of the versioned form, which says whether the tensor is read-only.
///
/// errors  also unsupported (another major version than 1: expected, actual; nothing of the tensor
///         was read)
inline Result<Tensor> import_tensor(ManagedTensorVersioned* managed) {
  if (managed == nullptr) {
    return detail::refused("import_tensor", ErrorCode::invalid_argument, "managed: null");
  }
  if (managed->version.major == version.major) return detail::imported(managed, managed->flags);
  const std::uint32_t major = managed->version.major;
  detail::Release()(managed);
  Error error = detail::refused("import_tensor", ErrorCode::unsupported,
                                "the tensor is of DLPack " + std::to_string(major) +
                                    ", and this program takes DLPack 1: ask its producer for "
                                    "that, by max_version of __dlpack__");
  error.expected = version.major;
  error.actual = major;
  return error;
}

/// Gives a tensor to another library, which calls its deleter when it is done with it. Until then
/// the tensor's owner is kept.
///
/// returns  never null
/// errors   invalid_argument (a read-only tensor, which this form cannot say: take
///          `export_versioned`; or it is none, see `validate`), resource_exhausted
/// threads  any; the deleter may be called on any, too
inline Result<ManagedTensor*> export_managed(Tensor tensor) {
  if (tensor.view().is_read_only) {
    return detail::refused("export_managed", ErrorCode::invalid_argument,
                           "tensor: it is read-only, which this form of DLPack cannot say; give it "
                           "by export_versioned, or give a copy");
  }
  return detail::exported<ManagedTensor>("export_managed", std::move(tensor));
}

/// The same in the versioned form, for libraries that know DLPack 1.
inline Result<ManagedTensorVersioned*> export_versioned(Tensor tensor) {
  const std::uint64_t flags = tensor.view().is_read_only ? read_only : 0;
  auto managed = detail::exported<ManagedTensorVersioned>("export_versioned", std::move(tensor));
  if (managed) {
    (*managed)->version = version;
    (*managed)->flags = flags;
  }
  return managed;
}

}  // namespace dlpack

MUSTER_END_NAMESPACE
