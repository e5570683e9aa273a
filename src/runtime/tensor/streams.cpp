#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "muster/codec.h"
#include "muster/tensor.h"
#include "runtime/cut_timeout.h"
#include "runtime/rank_group.h"
#include "runtime/shared/segment.h"
#include "runtime/tensor/call.h"
#include "runtime/tensor/copy.h"
#include "runtime/tensor/parcel.h"
#include "runtime/tensor/state.h"
#include "wire/reader.h"
#include "wire/writer.h"

// A tensor from one rank to another begins with a parcel, an object on the ranks' stream, which
// says what it is and how its bytes come: in the parcel itself; in a segment of shared memory that
// it names, which is the receiver's from then on; or by a communicator. Of these both ranks block
// until both are there, so first the receiver answers whether it takes the tensor, and the sender
// orders it to go on, or to give up if it has given up that tensor itself. Answers and orders have
// the parcel's number: those of a call that has timed out are passed over.

MUSTER_BEGIN_NAMESPACE

using runtime::Parcel;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view purpose_of_files = "tensor";

/// Answers to a stream's parcels, and orders behind those, go on streams of their own, far from
/// those of people.
Tag answers_to(Tag tag) { return Tag(tag.number ^ 0x6d75737465722d61); }
Tag orders_behind(Tag tag) { return Tag(tag.number ^ 0x6d75737465722d6f); }

/// What goes there: the parcel's number, and why the tensor is not taken or sent; empty: it is.
std::string encode_note(std::uint64_t number, std::string_view why_not) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u64(number);
  out.raw(why_not);
  return bytes;
}

/// One send or receive on one rank.
class Exchange {
 public:
  Exchange(TensorRanks group, std::string_view operation, const TensorOptions& options, Rank peer)
      : group_(group.group()),
        ranks_(group.ranks()),
        operation_(operation),
        options_(options),
        allocation_(options),
        peer_(peer),
        deadline_(Clock::now() + runtime::cut_to_a_year(options.timeout)) {}

  std::optional<Error> refusal() const {
    if (group_ == nullptr)
      return about(base::failure(ErrorCode::not_initialized,
                                 "the RankGroup is of no ranks: call Runtime::init before"));
    if (options_.timeout <= Duration::zero())
      return about(base::failure(ErrorCode::invalid_argument, "timeout: above zero"));
    if (peer_.number >= 0 && peer_.number < group_->world_size()) return {};
    return about(base::failure(ErrorCode::invalid_argument,
                               "there is no rank " + std::to_string(peer_.number)));
  }

  Result<void> send(const TensorView& tensor);
  /// into    where it is to be; null: it is allocated
  /// device  where it is to be allocated
  Result<Tensor> receive(const TensorView* into, Device device);
  Error about(Error error) const;
  void rethrow() const { allocation_.rethrow(); }

 private:
  Result<TensorWay> way_for(const TensorView& tensor) const;
  std::optional<Error> refusal_of(const TensorView& tensor, TensorWay way) const;
  Result<void> send_parcel(const Parcel& parcel, std::string rest);
  Result<void> send_in_memory(const TensorView& tensor, const Parcel& parcel);
  Result<void> send_by_communicator(const TensorView& tensor, const Parcel& parcel);

  std::optional<Error> misfit(const Parcel& parcel, const TensorView* into, Device device) const;
  Result<Tensor> place_for(const Parcel& parcel, const TensorView* into, Device device);
  Result<Tensor> receive_in_memory(const Parcel& parcel, const TensorView* into);
  Result<Tensor> receive_by_communicator(const Parcel& parcel, Result<Tensor> place);
  /// The peer's answer to that parcel, or its order; it says why not, or nothing.
  ///
  /// passed_over  called with the numbers of others
  template <class PassedOver>
  Result<std::string> note_of_peer(Tag tag, std::uint64_t number, const PassedOver& passed_over);
  Communicator* communicator(TensorWay way) const {
    return ranks_ == nullptr ? nullptr
                             : ranks_->communicator(way == TensorWay::gloo ? "cpu" : "cuda");
  }
  Duration left() const {
    return std::max(Duration(1), std::chrono::duration_cast<Duration>(deadline_ - Clock::now()));
  }

  StatelessProcessGroup* const group_;
  RankGroup::Impl* const ranks_;
  const std::string_view operation_;
  const TensorOptions& options_;
  runtime::Allocation allocation_;
  const Rank peer_;
  const Clock::time_point deadline_;
};

Error Exchange::about(Error error) const {
  error.operation = operation_;
  if (group_ != nullptr) {
    error.group = group_->name();
    error.epoch = group_->epoch();
  }
  if (error.decided_by.empty()) error.decided_by = "client";
  runtime::introduce(error, ranks_);
  return error;
}

Error blamed_on(Rank peer, ErrorCode code, std::string why) {
  Error error = base::failure(code, std::move(why));
  error.ranks.emplace_back().rank = peer.number;
  error.rank_ranges = {{peer.number, peer.number}};
  return error;
}

// Sending.

Result<TensorWay> Exchange::way_for(const TensorView& tensor) const {
  TensorWay way = options_.way;
  if (way == TensorWay::automatic) {
    const std::uint64_t bytes = tensor.byte_count();
    const std::uint64_t object_bytes_max = group_->store().limits().value_bytes_max;
    if (!tensor.device.is_host()) {
      way = TensorWay::nccl;
    } else if (bytes <= options_.store_bytes_max) {
      way = TensorWay::store;
    } else if (ranks_ != nullptr && ranks_->tensors().shared_so_far() != nullptr) {
      way = TensorWay::shared_memory;
    } else {
      const bool fits = bytes + runtime::parcel_bytes_max <= object_bytes_max;
      way = fits || communicator(TensorWay::gloo) == nullptr ? TensorWay::store : TensorWay::gloo;
    }
  }
  if (auto refused = refusal_of(tensor, way)) return about(*std::move(refused));
  return way;
}

std::optional<Error> Exchange::refusal_of(const TensorView& tensor, TensorWay way) const {
  const auto no = [](ErrorCode code, std::string why) {
    return base::failure(code, std::move(why));
  };
  const bool is_on_cuda =
      tensor.device.type == DeviceType::cuda || tensor.device.type == DeviceType::cuda_managed;
  switch (way) {
    case TensorWay::automatic: break;
    case TensorWay::store:
    case TensorWay::shared_memory:
    case TensorWay::gloo:
      if (tensor.device.is_host()) break;
      return no(ErrorCode::invalid_argument, "the tensor is on " + to_string(tensor.device) +
                                                 ", and the way '" + std::string(name_of(way)) +
                                                 "' takes host memory: copy it");
    case TensorWay::nccl:
      if (is_on_cuda && tensor.is_contiguous()) break;
      return no(ErrorCode::invalid_argument,
                "NCCL takes contiguous tensors of a CUDA device, and this is one on " +
                    to_string(tensor.device));
  }
  if (static_cast<std::uint8_t>(way) > static_cast<std::uint8_t>(TensorWay::nccl))
    return no(ErrorCode::invalid_argument, "TensorOptions::way is none of TensorWay");
  if (way == TensorWay::shared_memory && ranks_ == nullptr)
    return no(ErrorCode::way_missing, "for shared memory give a RankGroup");
  if (way == TensorWay::shared_memory) {
    const auto node_of = [this](int rank) {
      return ranks_->places()[static_cast<std::size_t>(rank)].node_rank;
    };
    const int own = node_of(group_->rank());
    const int its = node_of(peer_.number);
    if (own != its) {
      return no(ErrorCode::way_missing, "this rank is on node " + std::to_string(own) +
                                            ", and rank " + std::to_string(peer_.number) +
                                            " on node " + std::to_string(its) +
                                            ": they share no memory");
    }
  }
  const bool needs_communicator = way == TensorWay::gloo || way == TensorWay::nccl;
  if (needs_communicator && communicator(way) == nullptr) {
    return no(ErrorCode::way_missing, std::string("the group has no communicator ") +
                                          (way == TensorWay::gloo ? "'cpu:gloo'" : "'cuda:nccl'"));
  }
  if (needs_communicator && peer_.number == group_->rank())
    return no(ErrorCode::invalid_argument, "a communicator sends to other ranks only");
  return {};
}

Result<void> Exchange::send(const TensorView& tensor) {
  if (auto valid = validate(tensor); !valid) return about(std::move(valid).error());
  const auto way = way_for(tensor);
  if (!way) return way.error();
  const std::uint64_t number = ranks_ == nullptr ? 0 : ranks_->tensors().next_parcel();
  const Parcel parcel{*way, number, tensor.device, tensor.dtype, tensor.shape, {}};
  switch (*way) {
    case TensorWay::gloo:
    case TensorWay::nccl: return send_by_communicator(tensor, parcel);
    case TensorWay::shared_memory:
      if (tensor.byte_count() > 0) return send_in_memory(tensor, parcel);
      break;
    case TensorWay::automatic:
    case TensorWay::store: break;
  }
  std::string bytes(static_cast<std::size_t>(tensor.byte_count()), '\0');
  if (!bytes.empty()) runtime::pack(bytes.data(), tensor, 0, tensor.element_count());
  Parcel in_object = parcel;
  in_object.way = TensorWay::store;
  return send_parcel(in_object, std::move(bytes));
}

Result<void> Exchange::send_parcel(const Parcel& parcel, std::string rest) {
  auto sent =
      group_->send_bytes(peer_, codec_id::tensor, encode(parcel) + rest, options_.tag, left());
  if (!sent) return about(std::move(sent).error());
  return {};
}

Result<void> Exchange::send_in_memory(const TensorView& tensor, const Parcel& parcel) {
  const std::string folder(runtime::shared_memory_folder);
  auto file = runtime::NewFile::create(folder, purpose_of_files);
  if (!file) return about(std::move(file).error());
  if (auto written = runtime::append_packed(*file, tensor); !written)
    return about(std::move(written).error());
  auto sent = send_parcel(parcel, file->name());
  // It may have come though this rank does not know.
  if (sent || sent.error().happened == Happened::maybe) ranks_->tensors().keep(*std::move(file));
  return sent;
}

template <class PassedOver>
Result<std::string> Exchange::note_of_peer(Tag tag, std::uint64_t number,
                                           const PassedOver& passed_over) {
  for (;;) {
    auto received = group_->recv_bytes(peer_, codec_id::tensor, tag, left());
    if (!received) {
      // Of a stream that people do not know.
      Error error = std::move(received).error();
      error.stream = {};
      if (error.code == ErrorCode::timed_out) {
        error.detail = "rank " + std::to_string(peer_.number) +
                       " has not called its part, or not within this call's timeout";
      }
      return about(std::move(error));
    }
    wire::Reader in(received->bytes);
    const std::uint64_t its_number = in.u64();
    if (its_number == number) return std::string(in.raw(in.remaining()));
    passed_over(its_number);
  }
}

Result<void> Exchange::send_by_communicator(const TensorView& tensor, const Parcel& parcel) {
  if (auto sent = send_parcel(parcel, {}); !sent) return sent;
  const auto order = [&](std::uint64_t number, std::string_view why_not) {
    return group_->send_bytes(peer_, codec_id::tensor, encode_note(number, why_not),
                              orders_behind(options_.tag), left());
  };
  const auto answer =
      note_of_peer(answers_to(options_.tag), parcel.number, [&](std::uint64_t earlier) {
        static_cast<void>(order(earlier, "its sender has given it up"));
      });
  if (!answer) return answer.error();
  if (!answer->empty())
    return about(blamed_on(peer_, ErrorCode::mismatch, "it refuses: " + *answer));
  if (auto ordered = order(parcel.number, {}); !ordered) return about(std::move(ordered).error());
  const auto bytes = static_cast<std::size_t>(tensor.byte_count());
  if (bytes == 0) return {};
  std::vector<char> packed(tensor.is_contiguous() ? 0 : bytes);
  if (!packed.empty()) runtime::pack(packed.data(), tensor, 0, tensor.element_count());
  auto sent = communicator(parcel.way)
                  ->send(packed.empty() ? runtime::first_element(tensor) : packed.data(), bytes,
                         DataType::uint8, peer_.number,
                         parcel.way == TensorWay::nccl ? options_.stream : nullptr, left());
  return sent ? std::move(sent) : Result<void>(about(std::move(sent).error()));
}

// Receiving.

/// Why it cannot be taken.
std::optional<Error> Exchange::misfit(const Parcel& parcel, const TensorView* into,
                                      Device device) const {
  const Device there = into != nullptr ? into->device : device;
  if (parcel.device.is_host() != there.is_host()) {
    return blamed_on(peer_, ErrorCode::mismatch,
                     "its tensor is on " + to_string(parcel.device) + ", and is to be on " +
                         to_string(there) + ": copy it at either end");
  }
  if (into == nullptr || (into->dtype == parcel.dtype && into->shape == parcel.shape)) return {};
  return blamed_on(
      peer_, ErrorCode::mismatch,
      "its tensor is " + to_string(parcel.view()) + ", and the one here " + to_string(*into));
}

Result<Tensor> Exchange::place_for(const Parcel& parcel, const TensorView* into, Device device) {
  if (into != nullptr) return Tensor(*into, nullptr);
  return allocation_.make(device, parcel.dtype, parcel.shape);
}

Result<Tensor> Exchange::receive(const TensorView* into, Device device) {
  if (into != nullptr) {
    if (auto valid = validate(*into); !valid) return about(std::move(valid).error());
    if (into->is_read_only || runtime::overlaps_itself(*into)) {
      return about(base::failure(ErrorCode::invalid_argument,
                                 "the tensor is read-only, or elements of it lie at one place"));
    }
  }
  auto received = group_->recv_bytes(peer_, codec_id::tensor, options_.tag, left());
  if (!received) return about(std::move(received).error());
  const auto parcel = runtime::decode_parcel(received->bytes);
  if (!parcel) return about(parcel.error());
  std::optional<Error> refused = misfit(*parcel, into, device);
  if (parcel->way == TensorWay::shared_memory) {
    // Its memory is freed also if it is not wanted.
    auto tensor = receive_in_memory(*parcel, refused ? nullptr : into);
    return refused ? Result<Tensor>(about(*std::move(refused))) : std::move(tensor);
  }
  Result<Tensor> place =
      refused ? Result<Tensor>(*std::move(refused)) : place_for(*parcel, into, device);
  if (parcel->way != TensorWay::store) return receive_by_communicator(*parcel, std::move(place));
  if (!place) return about(std::move(place).error());
  const TensorView& there = place->view();
  if (!parcel->rest.empty()) runtime::unpack(there, parcel->rest.data(), 0, there.element_count());
  return place;
}

Result<Tensor> Exchange::receive_in_memory(const Parcel& parcel, const TensorView* into) {
  TensorView view = parcel.view();
  const std::string folder(runtime::shared_memory_folder);
  // It is removed here: the peer may name no other file of this user's.
  if (!runtime::is_name_of(parcel.rest, purpose_of_files)) {
    return about(blamed_on(peer_, ErrorCode::protocol_error,
                           "it gave no name of memory that holds a tensor"));
  }
  auto segment = runtime::SharedSegment::open(folder, parcel.rest, view.byte_count());
  if (!segment) {
    Error error = blamed_on(peer_, segment.error().code, segment.error().detail);
    return about(std::move(error));
  }
  ::unlink((folder + "/" + segment->name()).c_str());  // by which the sender sees that it has come
  view.data = segment->data();
  if (into == nullptr && !options_.allocate) {
    return Tensor(std::move(view), std::make_shared<runtime::SharedSegment>(*std::move(segment)));
  }
  auto place = place_for(parcel, into, {});
  if (!place) return about(std::move(place).error());
  runtime::unpack(place->view(), view.data, 0, view.element_count());
  return place;
}

Result<Tensor> Exchange::receive_by_communicator(const Parcel& parcel, Result<Tensor> place) {
  const auto by = communicator(parcel.way);
  if (place && by == nullptr)
    place = base::failure(ErrorCode::way_missing, "this rank has no communicator for it");
  if (place && parcel.way == TensorWay::nccl && !place->view().is_contiguous())
    place = base::failure(ErrorCode::invalid_argument, "NCCL takes contiguous tensors");
  const std::string why_not = place ? std::string() : place.error().detail + " ";
  auto answered = group_->send_bytes(peer_, codec_id::tensor, encode_note(parcel.number, why_not),
                                     answers_to(options_.tag), left());
  if (!place) return about(std::move(place).error());
  if (!answered) return about(std::move(answered).error());
  const auto order = note_of_peer(orders_behind(options_.tag), parcel.number, [](std::uint64_t) {});
  if (!order) return order.error();
  if (!order->empty()) return about(blamed_on(peer_, ErrorCode::timed_out, *order));
  const TensorView& there = place->view();
  const auto bytes = static_cast<std::size_t>(there.byte_count());
  if (bytes == 0) return place;
  std::vector<char> packed(there.is_contiguous() ? 0 : bytes);
  auto received = by->recv(packed.empty() ? runtime::first_element(there) : packed.data(), bytes,
                           DataType::uint8, peer_.number,
                           parcel.way == TensorWay::nccl ? options_.stream : nullptr, left());
  if (!received) return about(std::move(received).error());
  if (!packed.empty()) runtime::unpack(there, packed.data(), 0, there.element_count());
  return place;
}

}  // namespace

Result<void> send_tensor(TensorRanks group, Rank destination, const TensorView& tensor,
                         const TensorOptions& options) {
  Exchange exchange(group, "send_tensor", options, destination);
  if (auto refused = exchange.refusal()) return *std::move(refused);
  return exchange.send(tensor);
}

Result<Tensor> recv_tensor(TensorRanks group, Rank source, const TensorOptions& options,
                           Device device) {
  Exchange exchange(group, "recv_tensor", options, source);
  if (auto refused = exchange.refusal()) return *std::move(refused);
  auto received = exchange.receive(nullptr, device);
  exchange.rethrow();
  return received;
}

Result<void> recv_tensor_into(TensorRanks group, Rank source, const TensorView& tensor,
                              const TensorOptions& options) {
  Exchange exchange(group, "recv_tensor_into", options, source);
  if (auto refused = exchange.refusal()) return *std::move(refused);
  auto received = exchange.receive(&tensor, tensor.device);
  if (!received) return std::move(received).error();
  return {};
}

MUSTER_END_NAMESPACE
