#include "muster/tensor_dlpack.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

// Tensors of other libraries: what they keep, when it ends, and what is refused.

namespace muster::test {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;

/// What another library would give: it counts how often it was ended.
template <class Managed>
struct Foreign {
  Foreign() {
    managed.tensor.data = numbers.data();
    managed.tensor.device = {1, 0};
    managed.tensor.dimensions_count = 2;
    managed.tensor.dtype = {2, 32, 1};
    managed.tensor.shape = shape.data();
    managed.tensor.byte_offset = 4;
    managed.manager_context = this;
    managed.deleter = [](Managed* self) {
      ++static_cast<Foreign*>(self->manager_context)->deleted_count;
    };
    if constexpr (std::is_same_v<Managed, ManagedTensorVersioned>) managed.version = {1, 9};
  }

  std::vector<float> numbers = {0, 1, 2, 3, 4, 5, 6};
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {1, 2};
  int deleted_count = 0;
  Managed managed{};
};

template <class Managed>
void check_refused(Foreign<Managed>& foreign) {
  const auto tensor = dlpack::import_tensor(&foreign.managed);
  REQUIRE_FALSE(tensor);
  CHECK(tensor.error().code == ErrorCode::invalid_argument);
  CHECK(tensor.error().operation == "dlpack::import_tensor");
  CHECK(foreign.deleted_count == 1);
}

TEST_CASE_TEMPLATE("a tensor of another library is at its memory, until all owners are gone",
                   Managed, ManagedTensor, ManagedTensorVersioned) {
  Foreign<Managed> foreign;
  std::shared_ptr<void> owner;
  {
    auto tensor = dlpack::import_tensor(&foreign.managed);
    REQUIRE(tensor);
    CHECK(to_string(tensor->view()) == "float32 [2, 3] on cpu");
    CHECK(tensor->view().data == foreign.numbers.data());
    CHECK(tensor->view().byte_offset == 4);
    CHECK(tensor->view().strides.empty());
    CHECK_FALSE(tensor->view().is_read_only);
    owner = tensor->owner();
    const Tensor moved = *std::move(tensor);
  }
  CHECK(foreign.deleted_count == 0);
  owner.reset();
  CHECK(foreign.deleted_count == 1);
}

TEST_CASE("strides, devices and types are taken as they are, known or not") {
  Foreign<ManagedTensor> foreign;
  foreign.managed.tensor.strides = foreign.strides.data();
  foreign.managed.tensor.device = {17, 3};
  foreign.managed.tensor.dtype = {99, 8, 4};
  {
    const auto tensor = dlpack::import_tensor(&foreign.managed);
    REQUIRE(tensor);
    CHECK(to_string(tensor->view()) == "dtype 99:8x4 [2, 3] on device 17:3");
    CHECK(tensor->view().strides == foreign.strides);
  }
  CHECK(foreign.deleted_count == 1);
}

TEST_CASE("a tensor of no dimension, and one without a deleter, are taken") {
  Foreign<ManagedTensor> foreign;
  foreign.managed.tensor.dimensions_count = 0;
  foreign.managed.tensor.shape = nullptr;
  foreign.managed.deleter = nullptr;
  const auto tensor = dlpack::import_tensor(&foreign.managed);
  REQUIRE(tensor);
  CHECK(tensor->view().element_count() == 1);
}

TEST_CASE("the versioned form says what is read-only") {
  Foreign<ManagedTensorVersioned> foreign;
  foreign.managed.flags = dlpack::read_only | dlpack::is_copied | 1024;
  const auto tensor = dlpack::import_tensor(&foreign.managed);
  REQUIRE(tensor);
  CHECK(tensor->view().is_read_only);
}

TEST_CASE("another major version is refused unread, and ended") {
  for (const std::uint32_t major : {0U, 2U}) {
    Foreign<ManagedTensorVersioned> foreign;
    foreign.managed.version = {major, 0};
    foreign.managed.tensor.shape = nullptr;
    const auto tensor = dlpack::import_tensor(&foreign.managed);
    REQUIRE_FALSE(tensor);
    CHECK(tensor.error().code == ErrorCode::unsupported);
    CHECK(tensor.error().expected == 1);
    CHECK(tensor.error().actual == major);
    CHECK(foreign.deleted_count == 1);
    foreign.managed.deleter = nullptr;
    CHECK_FALSE(dlpack::import_tensor(&foreign.managed));
  }
}

TEST_CASE_TEMPLATE("what describes no tensor is refused, and ended", Managed, ManagedTensor,
                   ManagedTensorVersioned) {
  CHECK_FALSE(dlpack::import_tensor(static_cast<Managed*>(nullptr)));
  const std::int32_t counts[] = {-1, 65, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()};
  for (const std::int32_t count : counts) {
    Foreign<Managed> foreign;
    foreign.managed.tensor.dimensions_count = count;
    check_refused(foreign);
  }
  Foreign<Managed> shapeless;
  shapeless.managed.tensor.shape = nullptr;
  check_refused(shapeless);
  Foreign<Managed> negative;
  negative.shape[1] = -3;
  check_refused(negative);
  Foreign<Managed> huge;
  huge.shape[0] = huge.shape[1] = std::numeric_limits<std::int64_t>::max();
  check_refused(huge);
  Foreign<Managed> nowhere;
  nowhere.managed.tensor.data = nullptr;
  check_refused(nowhere);
  Foreign<Managed> bitless;
  bitless.managed.tensor.dtype = {2, 0, 0};
  check_refused(bitless);
}

TEST_CASE("a view of another library's tensor is not its owner") {
  Foreign<ManagedTensor> foreign;
  const auto view = dlpack::view_of(foreign.managed.tensor);
  REQUIRE(view);
  CHECK(view->data == foreign.numbers.data());
  foreign.managed.tensor.dimensions_count = -1;
  const auto refused = dlpack::view_of(foreign.managed.tensor);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().operation == "dlpack::view_of");
  CHECK(foreign.deleted_count == 0);
}

TEST_CASE("an exported tensor keeps its memory until its consumer ends it") {
  auto made = Tensor::make(dtype::int16, {2, 3, 4});
  REQUIRE(made);
  const std::weak_ptr<void> memory = made->owner();
  void* const data = made->view().data;
  auto managed = dlpack::export_managed(*std::move(made));
  REQUIRE(managed);
  const dlpack::RawTensor& tensor = (*managed)->tensor;
  CHECK(tensor.data == data);
  CHECK(tensor.device.type == 1);
  CHECK(tensor.dimensions_count == 3);
  CHECK(tensor.dtype.code == 0);
  CHECK(tensor.dtype.bits == 16);
  CHECK(tensor.shape[2] == 4);
  CHECK(tensor.strides[0] == 12);
  CHECK(tensor.strides[1] == 4);
  CHECK(tensor.strides[2] == 1);
  CHECK(memory.use_count() == 1);
  (*managed)->deleter(*managed);
  CHECK(memory.expired());
}

TEST_CASE("what was exported is the same when it is imported") {
  auto made = Tensor::make(dtype::bfloat16, {2, 0});
  REQUIRE(made);
  TensorView view = made->view();
  view.is_read_only = true;
  view.strides = {7, -3};
  auto managed = dlpack::export_versioned(Tensor(view, made->owner()));
  REQUIRE(managed);
  CHECK((*managed)->version.major == 1);
  CHECK((*managed)->flags == dlpack::read_only);
  const auto again = dlpack::import_tensor(*managed);
  REQUIRE(again);
  CHECK(again->view().is_read_only);
  CHECK(again->view().shape == view.shape);
  CHECK(again->view().strides == view.strides);
  CHECK(again->view().dtype == view.dtype);
}

TEST_CASE("a tensor that a form cannot describe is not exported") {
  const std::vector<float> fixed(3);
  const auto refused = dlpack::export_managed(Tensor(tensor_of(fixed), nullptr));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::invalid_argument);
  CHECK(refused.error().operation == "dlpack::export_managed");
  TensorView bad = tensor_of(fixed);
  bad.shape = {-3};
  const auto none = dlpack::export_versioned(Tensor(bad, nullptr));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace muster::test
