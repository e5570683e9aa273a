#pragma once

// Tensors of a host's own, and how ranks exchange them. In the library muster-runtime (CMake:
// Muster::runtime). No third party's type: muster/tensor_dlpack.h converts those of DLPack, so of
// torch, JAX, CuPy and NumPy.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/runtime.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// The kinds of devices that calls here tell apart, with DLPack's numbers. Others are numbers
/// without a name.
enum class DeviceType : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,  ///< host memory that is pinned for CUDA
  rocm = 10,
  rocm_host = 11,
  cuda_managed = 13,
};

/// Where a tensor's memory is.
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int32_t index = 0;  ///< among those of its type

  /// Whether a program can read it as its own memory.
  constexpr bool is_host() const {
    return type == DeviceType::cpu || type == DeviceType::cuda_host ||
           type == DeviceType::rocm_host;
  }
  friend constexpr bool operator==(Device a, Device b) {
    return a.type == b.type && a.index == b.index;
  }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }
};

/// "cpu", "cuda:1", or "device 7:0" of one without a name.
MUSTER_API std::string to_string(Device device);

/// What an element is, with the numbers of DLPack 1.1.
enum class DtypeCode : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  boolean = 6,
  float8_e3m4 = 7,
  float8_e4m3 = 8,
  float8_e4m3b11fnuz = 9,
  float8_e4m3fn = 10,
  float8_e4m3fnuz = 11,
  float8_e5m2 = 12,
  float8_e5m2fnuz = 13,
  float8_e8m0fnu = 14,
  float6_e2m3fn = 15,
  float6_e3m2fn = 16,
  float4_e2m1fn = 17,
};

/// The type of a tensor's elements.
struct Dtype {
  DtypeCode code = DtypeCode::floating;
  std::uint8_t bits = 32;   ///< of one lane
  std::uint16_t lanes = 1;  ///< of an element

  /// Of one element; 0: it does not end at a byte.
  constexpr std::uint32_t byte_count() const {
    const std::uint32_t all = static_cast<std::uint32_t>(bits) * lanes;
    return all % 8 == 0 ? all / 8 : 0;
  }
  friend constexpr bool operator==(Dtype a, Dtype b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
  }
  friend constexpr bool operator!=(Dtype a, Dtype b) { return !(a == b); }
};

/// "float32", "bfloat16", "float8_e4m3fn", "bool", "int8x4".
MUSTER_API std::string to_string(Dtype dtype);

namespace dtype {

inline constexpr Dtype int8{DtypeCode::signed_integer, 8, 1};
inline constexpr Dtype int16{DtypeCode::signed_integer, 16, 1};
inline constexpr Dtype int32{DtypeCode::signed_integer, 32, 1};
inline constexpr Dtype int64{DtypeCode::signed_integer, 64, 1};
inline constexpr Dtype uint8{DtypeCode::unsigned_integer, 8, 1};
inline constexpr Dtype uint16{DtypeCode::unsigned_integer, 16, 1};
inline constexpr Dtype uint32{DtypeCode::unsigned_integer, 32, 1};
inline constexpr Dtype uint64{DtypeCode::unsigned_integer, 64, 1};
inline constexpr Dtype float16{DtypeCode::floating, 16, 1};
inline constexpr Dtype float32{DtypeCode::floating, 32, 1};
inline constexpr Dtype float64{DtypeCode::floating, 64, 1};
inline constexpr Dtype bfloat16{DtypeCode::bfloat, 16, 1};
inline constexpr Dtype float8_e4m3fn{DtypeCode::float8_e4m3fn, 8, 1};
inline constexpr Dtype float8_e5m2{DtypeCode::float8_e5m2, 8, 1};
inline constexpr Dtype boolean{DtypeCode::boolean, 8, 1};
inline constexpr Dtype complex64{DtypeCode::complex, 64, 1};
inline constexpr Dtype complex128{DtypeCode::complex, 128, 1};

/// That of a bool, an integer, a float or a double.
template <class T>
constexpr Dtype of() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a bool, an integer, float or double");
  constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    return boolean;
  } else if constexpr (std::is_floating_point_v<T>) {
    return {DtypeCode::floating, bits, 1};
  } else if constexpr (std::is_signed_v<T>) {
    return {DtypeCode::signed_integer, bits, 1};
  } else {
    return {DtypeCode::unsigned_integer, bits, 1};
  }
}

}  // namespace dtype

/// Describes a tensor that belongs to somebody else, who keeps it while it is used.
struct TensorView {
  void* data = nullptr;
  Device device;
  Dtype dtype;
  std::vector<std::int64_t> shape;    ///< empty: one element, of no dimension
  std::vector<std::int64_t> strides;  ///< in elements; empty: those of a contiguous tensor
  std::uint64_t byte_offset = 0;      ///< of the first element from `data`
  bool is_read_only = false;

  MUSTER_API std::uint64_t element_count() const;
  /// Of all elements, without gaps.
  MUSTER_API std::uint64_t byte_count() const;
  /// Its elements lie one behind the other, the last dimension's first.
  MUSTER_API bool is_contiguous() const;
};

/// "float32 [2, 3] on cpu".
MUSTER_API std::string to_string(const TensorView& tensor);

/// Whether a view describes a tensor: no negative size, not more than 2^63-1 bytes, a stride for
/// each dimension or none, elements of whole bytes, memory where there are elements.
///
/// errors  invalid_argument
MUSTER_API Result<void> validate(const TensorView& tensor);

/// Views consecutive numbers as a tensor: of one dimension, or of the shape. Of const numbers it is
/// read-only.
///
/// shape  with as many elements as there are numbers
template <class T>
TensorView tensor_of(Span<T> numbers, std::vector<std::int64_t> shape) {
  TensorView view;
  view.data = const_cast<std::remove_const_t<T>*>(numbers.data());
  view.dtype = dtype::of<std::remove_const_t<T>>();
  view.shape = std::move(shape);
  view.is_read_only = std::is_const_v<T>;
  return view;
}
template <class T>
TensorView tensor_of(Span<T> numbers) {
  return tensor_of(numbers, {static_cast<std::int64_t>(numbers.size())});
}
template <class T>
TensorView tensor_of(std::vector<T>& numbers) {
  return tensor_of(Span<T>(numbers));
}
template <class T>
TensorView tensor_of(const std::vector<T>& numbers) {
  return tensor_of(Span<const T>(numbers));
}

/// A tensor with its memory. Moved, not copied.
class MUSTER_API Tensor {
 public:
  Tensor() = default;  ///< of no elements
  /// owner  keeps the memory; what it points to does not matter
  Tensor(TensorView view, std::shared_ptr<void> owner)
      : view_(std::move(view)), owner_(std::move(owner)) {}
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  /// In host memory, contiguous; its elements have no value yet.
  ///
  /// errors  invalid_argument, resource_exhausted (there is no such memory)
  static Result<Tensor> make(Dtype dtype, std::vector<std::int64_t> shape);

  const TensorView& view() const { return view_; }
  const std::shared_ptr<void>& owner() const { return owner_; }

 private:
  TensorView view_{nullptr, {}, {}, {0}, {}, 0, false};
  std::shared_ptr<void> owner_;
};

struct NamedTensorView {
  std::string name;
  TensorView tensor;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// How tensors get from rank to rank.
enum class TensorWay : std::uint8_t {
  automatic = 0,
  store = 1,          ///< through the server, as objects
  shared_memory = 2,  ///< among processes of one host
  gloo = 3,           ///< the group's communicator for "cpu", by Gloo
  nccl = 4,           ///< the group's communicator for "cuda", by NCCL
};

/// "automatic", "store", "shared_memory", "gloo", "nccl".
MUSTER_API std::string_view name_of(TensorWay way);

/// Options of a call on tensors. All ranks give equal ones, but for `stream` and `allocate`.
struct TensorOptions {
  /// Automatic: NCCL for tensors on CUDA devices. For those in host memory shared memory, if all
  /// ranks share one; else the store up to `store_bytes_max`, then Gloo; without Gloo the store.
  TensorWay way = TensorWay::automatic;
  std::uint64_t store_bytes_max = std::uint64_t{256} << 10;  ///< of one rank's tensor
  void* stream = nullptr;  ///< a cudaStream_t, with NCCL; the call returns when its work is on it
  Tag tag;                 ///< of send_tensor and recv_tensor
  /// Gives the memory of tensors that a call returns, to be written; none: `Tensor::make`, for host
  /// memory. Device: as at the rank that gives the tensor. What it throws is thrown again when the
  /// others have been told (callback_failed).
  std::function<Result<Tensor>(Device device, Dtype dtype, const std::vector<std::int64_t>& shape)>
      allocate;
  Duration timeout{std::chrono::seconds(300)};  ///< of the whole call, above zero
  /// Why this rank cannot do its part: it calls all the same, and a collective is an error on all
  /// ranks (invalid_argument, `detail`: this text). Empty: it can.
  std::string refusal;
};

/// Ranks that exchange tensors: those of a RankGroup, by all ways; or those of any group, through
/// the store alone. A reference: the group outlives it.
class TensorRanks {
 public:
  TensorRanks(RankGroup& group) : group_(group.group()), ranks_(group.impl()) {}
  TensorRanks(StatelessProcessGroup& group) : group_(&group) {}

  StatelessProcessGroup* group() const { return group_; }
  RankGroup::Impl* ranks() const { return ranks_; }

 private:
  StatelessProcessGroup* group_ = nullptr;
  RankGroup::Impl* ranks_ = nullptr;
};

// Collectives, but for send and recv: all ranks call them in the same order as other collectives of
// the group. Each has one outcome for all ranks: what one rank refuses (a read-only tensor that
// would be written, memory of another device than its way can use), and what does not fit together
// (shapes, dtypes, operations, roots, options), is an error on all ranks that names those ranks.
// Strided tensors are packed on their way, but for NCCL, which takes contiguous ones.
//
// errors   of all: invalid_argument (ranks: who refused; `detail`: why), mismatch (ranks: those
//          that differ from rank 0), way_missing (`detail`: why), resource_exhausted (there is no
//          memory for it), too_large (an element does not fit into what the server takes at once),
//          not_initialized (a RankGroup of no ranks), those of a collective of the group and, with
//          Gloo and NCCL, those of the communicator. After timed_out and errors of a lost rank in
//          shared memory, the tensors that were to be written may be partly written
// threads  one of these at a time on one group, and no other collective of it: of ranks that share
//          memory, some in one of these and others in a barrier wait for each other until their
//          timeouts; not from an inline handler
// cost     among ranks that share memory no round trip, but for the first call; else one round
//          trip, in which small tensors go along, and then what the way takes
// see      docs/runtime.md "Tensors"

/// Combines the ranks' tensors element by element, in place.
///
/// Every rank gets the same to the last bit, through every way but NCCL: elements are combined in
/// the order of ranks, or by Gloo in an order of its own. What is too large for float8, also an
/// infinity, becomes its largest number. float16, bfloat16 and float8 are combined in float32, and
/// rounded once. Integers wrap around.
///
/// operation  sum, product, max, min: of integers and floating-point numbers; average: of the
///            latter; bit_and, bit_or, bit_xor: of integers and bools; max and min also of bools.
///            A nan stays a nan in all of them
/// see        as composer's all_reduce, and vLLM's of its StatelessProcessGroup
MUSTER_API Result<void> all_reduce_tensor(TensorRanks group, const TensorView& tensor,
                                          ReduceOp operation = ReduceOp::sum,
                                          const TensorOptions& options = {});

/// Gives all ranks the root's tensor, into tensors that are there.
///
/// see  as composer's broadcast, and vLLM's of its StatelessProcessGroup
MUSTER_API Result<void> broadcast_tensor(TensorRanks group, const TensorView& tensor, Rank root,
                                         const TensorOptions& options = {});

/// Gathers one tensor from every rank, on every rank. Shapes may differ; dtypes and devices' types
/// may not.
///
/// returns  world_size() tensors, element i from rank i
/// see      as OLMo-core's all_gather
MUSTER_API Result<std::vector<Tensor>> all_gather_tensor(TensorRanks group,
                                                         const TensorView& tensor,
                                                         const TensorOptions& options = {});

/// Combines the ranks' tensors, of which each rank gets its part: the rank's slice along the first
/// dimension, which world_size() divides.
///
/// send       [n * world_size(), ...]
/// receive    [n, ...]; may not overlap `send`
/// operation  as all_reduce_tensor
MUSTER_API Result<void> reduce_scatter_tensor(TensorRanks group, const TensorView& send,
                                              const TensorView& receive,
                                              ReduceOp operation = ReduceOp::sum,
                                              const TensorOptions& options = {});

/// Sends a tensor to another rank, on the same streams as objects (see Tag). Not collective.
///
/// Blocks until the tensor is stored: by the server, or in shared memory, which this rank's
/// RankGroup keeps until it was received or the group is destroyed. With Gloo: until it is
/// received. With NCCL: until the receiver has called and it is on the stream.
MUSTER_API Result<void> send_tensor(TensorRanks group, Rank destination, const TensorView& tensor,
                                    const TensorOptions& options = {});

/// Receives the next tensor from a rank; the sender has chosen the way. Not collective.
///
/// device   where it is to be; another one than host memory needs `allocate`
/// errors   codec_mismatch (the next one is no tensor), those of recv_obj
MUSTER_API Result<Tensor> recv_tensor(TensorRanks group, Rank source,
                                      const TensorOptions& options = {}, Device device = {});
/// The same into a tensor that is there.
///
/// errors  also mismatch (ranks: the source, whose tensor has another shape or dtype); it is
///         received then
MUSTER_API Result<void> recv_tensor_into(TensorRanks group, Rank source, const TensorView& tensor,
                                         const TensorOptions& options = {});

/// Options of `broadcast_state_dict`.
struct StateDictOptions : TensorOptions {
  /// Tensors in host memory travel together, so many bytes at a time; at least 4,096.
  std::uint64_t bucket_bytes = std::uint64_t{16} << 20;
};

/// Gives all ranks the root's tensors: first their names, shapes and dtypes in one object, then
/// their bytes.
///
/// tensors  at the root; other ranks give std::nullopt
/// returns  at other ranks the tensors, in the root's order, on the devices' types that they have
///          at the root; at the root nothing
/// errors   also invalid_argument (ranks: the root, which gave no tensors, or others, which gave
///          some), too_large (the tensors' names and shapes are no object that the server takes)
/// see      as ModelOpt's broadcast_state_dict
MUSTER_API Result<std::vector<NamedTensor>> broadcast_state_dict(
    TensorRanks group, std::optional<Span<const NamedTensorView>> tensors, Rank root = Rank(0),
    const StateDictOptions& options = {});

MUSTER_END_NAMESPACE
