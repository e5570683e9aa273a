#include <cstddef>

#include <doctest/doctest.h>

#include "muster/tensor_dlpack.h"

#ifdef MUSTER_HAS_DLPACK
#include <dlpack/dlpack.h>
#endif

// Our layouts and numbers are those of a dlpack.h of DLPack's own, where there is one.

namespace muster::test {
namespace {

#ifdef MUSTER_HAS_DLPACK

template <class Ours, class Theirs>
constexpr bool are_equal(Ours ours, Theirs theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}

static_assert(sizeof(dlpack::RawDevice) == sizeof(DLDevice));
static_assert(offsetof(dlpack::RawDevice, type) == offsetof(DLDevice, device_type));
static_assert(offsetof(dlpack::RawDevice, index) == offsetof(DLDevice, device_id));

static_assert(sizeof(dlpack::RawDtype) == sizeof(DLDataType));
static_assert(offsetof(dlpack::RawDtype, code) == offsetof(DLDataType, code));
static_assert(offsetof(dlpack::RawDtype, bits) == offsetof(DLDataType, bits));
static_assert(offsetof(dlpack::RawDtype, lanes) == offsetof(DLDataType, lanes));

static_assert(sizeof(dlpack::RawTensor) == sizeof(DLTensor));
static_assert(offsetof(dlpack::RawTensor, data) == offsetof(DLTensor, data));
static_assert(offsetof(dlpack::RawTensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(dlpack::RawTensor, dimensions_count) == offsetof(DLTensor, ndim));
static_assert(offsetof(dlpack::RawTensor, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(dlpack::RawTensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(dlpack::RawTensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(dlpack::RawTensor, byte_offset) == offsetof(DLTensor, byte_offset));

static_assert(sizeof(dlpack::ManagedTensor) == sizeof(DLManagedTensor));
static_assert(offsetof(dlpack::ManagedTensor, tensor) == offsetof(DLManagedTensor, dl_tensor));
static_assert(offsetof(dlpack::ManagedTensor, manager_context) ==
              offsetof(DLManagedTensor, manager_ctx));
static_assert(offsetof(dlpack::ManagedTensor, deleter) == offsetof(DLManagedTensor, deleter));

static_assert(are_equal(DeviceType::cpu, kDLCPU));
static_assert(are_equal(DeviceType::cuda, kDLCUDA));
static_assert(are_equal(DeviceType::cuda_host, kDLCUDAHost));
static_assert(are_equal(DeviceType::rocm, kDLROCM));
static_assert(are_equal(DeviceType::rocm_host, kDLROCMHost));
static_assert(are_equal(DeviceType::cuda_managed, kDLCUDAManaged));

static_assert(are_equal(DtypeCode::signed_integer, kDLInt));
static_assert(are_equal(DtypeCode::unsigned_integer, kDLUInt));
static_assert(are_equal(DtypeCode::floating, kDLFloat));
static_assert(are_equal(DtypeCode::opaque, kDLOpaqueHandle));
static_assert(are_equal(DtypeCode::bfloat, kDLBfloat));
static_assert(are_equal(DtypeCode::complex, kDLComplex));

#endif

TEST_CASE("a tensor of a host that has dlpack.h is taken by a cast") {
#ifdef MUSTER_HAS_DLPACK
  static float numbers[6];
  static std::int64_t shape[] = {2, 3};
  static int deleted_count = 0;
  DLManagedTensor managed{};
  managed.dl_tensor.data = numbers;
  managed.dl_tensor.device = {kDLCPU, 0};
  managed.dl_tensor.ndim = 2;
  managed.dl_tensor.dtype = {kDLFloat, 32, 1};
  managed.dl_tensor.shape = shape;
  // Of our type, as the call is: sanitizers compare them, and a process of its own has one of them.
  const auto count_deletion = [](dlpack::ManagedTensor*) { ++deleted_count; };
  void (*const deleter)(dlpack::ManagedTensor*) = count_deletion;
  managed.deleter = reinterpret_cast<void (*)(DLManagedTensor*)>(deleter);
  {
    const auto tensor = dlpack::import_tensor(reinterpret_cast<dlpack::ManagedTensor*>(&managed));
    REQUIRE(tensor);
    CHECK(to_string(tensor->view()) == "float32 [2, 3] on cpu");
    CHECK(tensor->view().data == numbers);
  }
  CHECK(deleted_count == 1);
#else
  MESSAGE("skipped: there is no dlpack/dlpack.h (libdlpack-dev)");
#endif
}

}  // namespace
}  // namespace muster::test
