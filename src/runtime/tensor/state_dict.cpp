#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "muster/codec.h"
#include "muster/tensor.h"
#include "runtime/tensor/by_communicator.h"
#include "runtime/tensor/call.h"
#include "runtime/tensor/copy.h"
#include "runtime/tensor/parcel.h"
#include "wire/reader.h"
#include "wire/writer.h"

// A state dict goes in three parts: the root's description of all tensors, as one object; then each
// rank tells whether it has the memory; then the bytes. Those of tensors in host memory are one
// stream, cut into buckets at ends of elements, in the same places on all ranks. Tensors on devices
// go one by one.

MUSTER_BEGIN_NAMESPACE

using runtime::Steps;
using runtime::TensorCall;
using runtime::TensorCollective;
using runtime::TensorOffer;

namespace {

/// Tensors in host memory as one stream of elements.
class TensorStream {
 public:
  void add(TensorView tensor) { tensors_.push_back(std::move(tensor)); }

  /// Goes on by as many elements as so many bytes hold, and calls `visit(tensor, first, count,
  /// offset)` for those of each tensor; `offset` counts bytes.
  ///
  /// returns  how many bytes these are; 0: it has ended
  template <class Visit>
  std::uint64_t next(std::uint64_t bytes_max, const Visit& visit) {
    std::uint64_t bytes = 0;
    while (tensor_ < tensors_.size()) {
      const TensorView& tensor = tensors_[tensor_];
      const std::uint64_t element_bytes = tensor.dtype.byte_count();
      const std::uint64_t count =
          std::min(tensor.element_count() - first_, (bytes_max - bytes) / element_bytes);
      if (count > 0) visit(tensor, first_, count, bytes);
      bytes += count * element_bytes;
      first_ += count;
      if (first_ < tensor.element_count()) break;
      first_ = 0;
      ++tensor_;
    }
    return bytes;
  }

 private:
  std::vector<TensorView> tensors_;
  std::size_t tensor_ = 0;
  std::uint64_t first_ = 0;
};

std::string describe(Span<const NamedTensorView> tensors) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u32(static_cast<std::uint32_t>(tensors.size()));
  for (const NamedTensorView& named : tensors) {
    out.bytes(named.name);
    const TensorView& tensor = named.tensor;
    out.bytes(encode(
        runtime::Parcel{TensorWay::automatic, 0, tensor.device, tensor.dtype, tensor.shape, {}}));
  }
  return bytes;
}

Result<std::vector<NamedTensorView>> described(std::string_view bytes) {
  wire::Reader in(bytes);
  std::vector<NamedTensorView> tensors;
  for (std::uint32_t count = in.count(2 * sizeof(std::uint32_t)); count > 0; --count) {
    NamedTensorView& named = tensors.emplace_back();
    named.name = in.bytes();
    auto parcel = runtime::decode_parcel(in.bytes());
    if (!parcel) return std::move(parcel).error();
    named.tensor = parcel->view();
  }
  if (!in.ok() || !in.at_end())
    return base::failure(ErrorCode::protocol_error, "the description of the tensors is malformed");
  return tensors;
}

/// What the root cannot send, or cannot be asked for.
///
/// description  at the root, of its tensors
TensorOffer offer_of(const TensorCall& call, std::optional<Span<const NamedTensorView>> tensors,
                     const std::string& description, Rank root, const StateDictOptions& options) {
  TensorOffer own;
  own.collective = TensorCollective::broadcast_state_dict;
  own.way = options.way;
  own.root = root.number;
  own.store_bytes_max = options.store_bytes_max;
  own.bucket_bytes = options.bucket_bytes;
  const auto refuse = [&](std::string why) {
    TensorCall::refuse(own, ErrorCode::invalid_argument, std::move(why));
  };
  if (!options.refusal.empty()) {
    refuse(options.refusal);
    return own;
  }
  if (root.number < 0 || root.number >= call.world_size())
    refuse("there is no rank " + std::to_string(root.number));
  if (options.bucket_bytes < runtime::element_bytes_max)
    refuse("bucket_bytes: at least " + std::to_string(runtime::element_bytes_max));
  if (call.rank() != root.number) {
    if (tensors) refuse("it is not the root, and gave tensors: give std::nullopt");
    return own;
  }
  if (!tensors) {
    refuse("it is the root, and gave no tensors");
    return own;
  }
  for (const NamedTensorView& named : *tensors) {
    const auto refusal = call.offer(named.tensor, TensorCall::Use::read).refusal;
    if (refusal) TensorCall::refuse(own, refusal->code, "'" + named.name + "': " + refusal->detail);
  }
  const std::uint64_t object_bytes_max = call.group().store().limits().value_bytes_max;
  if (description.size() > object_bytes_max) {
    TensorCall::refuse(own, ErrorCode::too_large,
                       "the names and shapes of its " + std::to_string(tensors->size()) +
                           " tensors are an object of " + std::to_string(description.size()) +
                           " bytes, and the server takes " + std::to_string(object_bytes_max) +
                           ": raise its value_bytes_max, or give fewer tensors at a time");
  }
  return own;
}

class Broadcast {
 public:
  Broadcast(TensorCall& call, int root, std::uint64_t bucket_bytes)
      : call_(call), root_(root), bucket_bytes_(bucket_bytes) {}

  Result<void> run(const std::vector<TensorView>& tensors) {
    TensorStream stream;
    std::uint64_t bytes = 0;
    for (const TensorView& tensor : tensors) {
      if (!tensor.device.is_host()) continue;
      stream.add(tensor);
      bytes += tensor.byte_count();
    }
    if (bytes > 0) {
      // As large as they are together, at most; of larger ones nothing is gained.
      constexpr std::uint64_t enough = std::uint64_t{256} << 20;
      bucket_bytes_ =
          std::min({bucket_bytes_, std::max(bytes, runtime::element_bytes_max), enough});
      const TensorWay way = call_.way_for(DeviceType::cpu, bytes);
      auto sent = way == TensorWay::gloo ? by_gloo(stream) : by_steps(stream, way);
      if (!sent) return sent;
    }
    for (const TensorView& tensor : tensors) {
      if (tensor.device.is_host() || tensor.element_count() == 0) continue;
      if (auto sent = runtime::broadcast_by(call_, TensorWay::nccl, tensor, root_); !sent)
        return sent;
    }
    return {};
  }

 private:
  bool is_root() const { return call_.rank() == root_; }

  static auto packing(char* to) {
    return [to](const TensorView& tensor, std::uint64_t first, std::uint64_t count,
                std::uint64_t offset) { runtime::pack(to + offset, tensor, first, count); };
  }
  static auto unpacking(const char* from) {
    return [from](const TensorView& tensor, std::uint64_t first, std::uint64_t count,
                  std::uint64_t offset) { runtime::unpack(tensor, from + offset, first, count); };
  }
  static void passing(const TensorView&, std::uint64_t, std::uint64_t, std::uint64_t) {}

  Result<void> by_steps(TensorStream& stream, TensorWay way) {
    Steps& steps = call_.steps_of(way);
    const std::uint64_t bytes_max = std::min<std::uint64_t>(bucket_bytes_, steps.part_bytes_max());
    TensorStream ahead = stream;  // says what comes before it has come
    for (;;) {
      const std::uint64_t bytes = ahead.next(bytes_max, passing);
      if (bytes == 0) return {};
      if (is_root())
        stream.next(bytes_max, packing(steps.own_part(static_cast<std::size_t>(bytes))));
      const std::size_t own_bytes = is_root() ? static_cast<std::size_t>(bytes) : 0;
      if (auto stepped = steps.exchange(own_bytes, call_.deadline()); !stepped)
        return call_.about(std::move(stepped).error());
      if (is_root()) continue;
      const std::string_view part = steps.part(root_);
      if (part.size() < bytes) {
        return call_.about(base::failure(ErrorCode::protocol_error,
                                         "the root gave fewer bytes than its tensors have"));
      }
      stream.next(bytes_max, unpacking(part.data()));
    }
  }

  Result<void> by_gloo(TensorStream& stream) {
    std::vector<char> bucket(bucket_bytes_);
    TensorStream ahead = stream;
    for (;;) {
      const std::uint64_t bytes = ahead.next(bucket_bytes_, passing);
      if (bytes == 0) return {};
      if (is_root()) stream.next(bucket_bytes_, packing(bucket.data()));
      auto sent = call_.communicator(TensorWay::gloo)
                      ->broadcast(bucket.data(), bucket.data(), static_cast<std::size_t>(bytes),
                                  DataType::uint8, root_, nullptr, call_.left());
      if (!sent) return call_.about(std::move(sent).error());
      if (!is_root()) stream.next(bucket_bytes_, unpacking(bucket.data()));
    }
  }

  TensorCall& call_;
  const int root_;
  std::uint64_t bucket_bytes_;
};

}  // namespace

Result<std::vector<NamedTensor>> broadcast_state_dict(
    TensorRanks group, std::optional<Span<const NamedTensorView>> tensors, Rank root,
    const StateDictOptions& options) {
  auto call = TensorCall::begin(group, TensorCollective::broadcast_state_dict, options);
  if (!call) return std::move(call).error();
  const bool is_root = call->rank() == root.number;
  const std::string own_description =
      is_root && tensors && options.refusal.empty() ? describe(*tensors) : std::string();
  auto agreed = call->agree(offer_of(*call, tensors, own_description, root, options), nullptr);
  if (!agreed) return std::move(agreed).error();
  auto description =
      call->group().broadcast_bytes(own_description, codec_id::tensor, root, call->left());
  if (!description) return call->about(std::move(description).error());

  std::vector<NamedTensor> received;
  std::vector<TensorView> views;
  runtime::Allocation allocation(options);
  std::optional<Error> failure;
  if (is_root) {
    for (const NamedTensorView& named : *tensors) views.push_back(named.tensor);
  } else {
    auto expected = described(*description);
    if (!expected) failure = std::move(expected).error();
    for (std::size_t index = 0; expected && index < expected->size(); ++index) {
      NamedTensorView& named = (*expected)[index];
      auto made = allocation.make(named.tensor.device, named.tensor.dtype, named.tensor.shape);
      if (!made) {
        failure = std::move(made).error();
        break;
      }
      received.push_back({std::move(named.name), *std::move(made)});
      views.push_back(received.back().tensor.view());
    }
  }
  auto confirmed = call->confirm(std::move(failure));
  allocation.rethrow();
  if (!confirmed) return std::move(confirmed).error();
  auto sent = Broadcast(*call, root.number, options.bucket_bytes).run(views);
  if (!sent) return std::move(sent).error();
  return received;
}

MUSTER_END_NAMESPACE
