#include "runtime/tensor/offer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::runtime {

namespace {

constexpr std::size_t shape_sizes_max = 64;
constexpr std::size_t refusal_bytes_max = 256;
/// Payloads begin at such a multiple, so that elements of every type can be read there.
constexpr std::size_t payload_alignment = 64;

TensorView tensor_of_offer(const TensorOffer& offer) {
  TensorView view;
  view.device.type = offer.device;
  view.dtype = offer.dtype;
  view.shape = offer.shape;
  return view;
}

std::string name_of_operation(const TensorOffer& offer) {
  constexpr std::array names = {"sum",     "product", "max",    "min",
                                "average", "bit_and", "bit_or", "bit_xor"};
  const auto number = static_cast<std::size_t>(offer.operation);
  return number < names.size() ? names[number] : std::to_string(number);
}

/// What an offer has that another one has not; empty: they fit together.
std::string difference(const TensorOffer& first, const TensorOffer& other) {
  const auto number = [](auto value) { return std::to_string(static_cast<std::uint64_t>(value)); };
  const auto both = [](std::string_view what, const std::string& its,
                       const std::string& of_rank_0) {
    return its == of_rank_0 ? std::string()
                            : std::string(what) + " " + its + ", rank 0 " + of_rank_0;
  };
  const auto described = [&](const TensorOffer& offer) {
    const std::string text = to_string(tensor_of_offer(offer));
    if (offer.collective != TensorCollective::all_gather) return text;
    return to_string(offer.dtype) + text.substr(text.rfind(" on "));
  };
  for (std::string found :
       {both("has a tensor", described(other), described(first)),
        both("gives the operation", name_of_operation(other), name_of_operation(first)),
        both("gives root", std::to_string(other.root), std::to_string(first.root)),
        both("asks for the way", std::string(name_of(other.way)), std::string(name_of(first.way))),
        both("gives store_bytes_max", number(other.store_bytes_max), number(first.store_bytes_max)),
        both("gives bucket_bytes", number(other.bucket_bytes), number(first.bucket_bytes))})
    if (!found.empty()) return found;
  return {};
}

}  // namespace

std::string_view name_of(TensorCollective collective) {
  switch (collective) {
    case TensorCollective::all_reduce: return "all_reduce_tensor";
    case TensorCollective::broadcast: return "broadcast_tensor";
    case TensorCollective::all_gather: return "all_gather_tensor";
    case TensorCollective::reduce_scatter: return "reduce_scatter_tensor";
    case TensorCollective::broadcast_state_dict: return "broadcast_state_dict";
  }
  return "unknown";
}

std::uint64_t TensorOffer::byte_count() const { return tensor_of_offer(*this).byte_count(); }

std::string encode(const TensorOffer& offer) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u32(0);  // the payload's place
  out.u8(static_cast<std::uint8_t>(offer.collective));
  out.u8(static_cast<std::uint8_t>(offer.operation));
  out.u8(static_cast<std::uint8_t>(offer.way));
  out.i32(offer.root);
  out.u64(offer.store_bytes_max);
  out.u64(offer.bucket_bytes);
  out.u8(static_cast<std::uint8_t>(offer.dtype.code));
  out.u8(offer.dtype.bits);
  out.u16(offer.dtype.lanes);
  out.i32(static_cast<std::int32_t>(offer.device));
  out.u8(offer.is_confirmed ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(offer.shape.size()));
  for (const std::int64_t size : offer.shape) out.i64(size);
  out.u16(offer.refusal ? static_cast<std::uint16_t>(offer.refusal->code) : 0);
  if (offer.refusal)
    out.bytes(std::string_view(offer.refusal->detail).substr(0, refusal_bytes_max));
  bytes.resize((bytes.size() + payload_alignment - 1) / payload_alignment * payload_alignment);
  out.patch_u32(0, static_cast<std::uint32_t>(bytes.size()));
  return bytes;
}

Result<TensorOffer> decode_tensor_offer(std::string_view bytes) {
  wire::Reader in(bytes);
  TensorOffer offer;
  const std::uint32_t payload_at = in.u32();
  offer.collective = static_cast<TensorCollective>(in.u8());
  offer.operation = static_cast<ReduceOp>(in.u8());
  offer.way = static_cast<TensorWay>(in.u8());
  offer.root = in.i32();
  offer.store_bytes_max = in.u64();
  offer.bucket_bytes = in.u64();
  offer.dtype.code = static_cast<DtypeCode>(in.u8());
  offer.dtype.bits = in.u8();
  offer.dtype.lanes = in.u16();
  offer.device = static_cast<DeviceType>(in.i32());
  offer.is_confirmed = in.u8() != 0;
  const std::uint32_t dimensions = in.count(sizeof(std::int64_t));
  for (std::uint32_t index = 0; index < std::min<std::size_t>(dimensions, shape_sizes_max); ++index)
    offer.shape.push_back(in.i64());
  if (const std::uint16_t code = in.u16(); code != 0)
    offer.refusal = base::failure(static_cast<ErrorCode>(code), std::string(in.bytes()));
  if (!in.ok() || dimensions > shape_sizes_max || payload_at > bytes.size())
    return base::failure(ErrorCode::protocol_error, "what it tells of its call is malformed");
  offer.payload = bytes.substr(payload_at);
  return offer;
}

Result<void> compare(const std::vector<TensorOffer>& offers) {
  Error refused;
  Error different = base::failure(ErrorCode::mismatch, {});
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const TensorOffer& offer = offers[rank];
    const auto add = [rank, &offer](Error& error, std::string why) {
      base::add_to(error.rank_ranges, rank);
      if (error.ranks.empty()) error.detail = "rank " + std::to_string(rank) + " " + why;
      if (error.ranks.size() >= 64) return;
      RankReport& report = error.ranks.emplace_back();
      report.rank = static_cast<int>(rank);
      report.called = name_of(offer.collective);
    };
    if (offer.refusal) {
      if (refused.ranks.empty()) refused.code = offer.refusal->code;
      add(refused, "refuses: " + offer.refusal->detail);
    } else if (offer.collective != offers[0].collective) {
      different.code = ErrorCode::collective_mismatch;
      add(different, "called " + std::string(name_of(offer.collective)) + ", rank 0 " +
                         std::string(name_of(offers[0].collective)));
    } else if (std::string why = difference(offers[0], offer); !why.empty()) {
      add(different, std::move(why));
    }
  }
  if (!refused.ranks.empty()) return refused;
  if (!different.ranks.empty()) return different;
  return {};
}

}  // namespace muster::runtime
