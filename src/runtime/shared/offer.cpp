#include "runtime/shared/offer.h"

#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::runtime {

namespace {

void write_trouble(wire::Writer& out, const std::optional<Trouble>& trouble) {
  out.u8(trouble.has_value() ? 1 : 0);
  if (!trouble) return;
  out.u16(static_cast<std::uint16_t>(trouble->code));
  out.u64(trouble->actual);
  out.u64(trouble->limit);
  out.u32(static_cast<std::uint32_t>(trouble->ranks.size()));
  for (const int rank : trouble->ranks) out.i32(rank);
  out.bytes(trouble->detail);
}

std::optional<Trouble> read_trouble(wire::Reader& in) {
  if (in.u8() == 0) return {};
  Trouble trouble;
  trouble.code = static_cast<ErrorCode>(in.u16());
  trouble.actual = in.u64();
  trouble.limit = in.u64();
  for (std::uint32_t count = in.count(sizeof(std::int32_t)); count > 0; --count)
    trouble.ranks.push_back(in.i32());
  trouble.detail = in.bytes();
  return trouble;
}

}  // namespace

Trouble trouble_of(const Error& error) {
  Trouble trouble;
  trouble.code = error.code;
  trouble.actual = error.actual;
  trouble.limit = error.limit;
  for (const RankRange& range : error.rank_ranges)
    for (int rank = range.first; rank <= range.last; ++rank) trouble.ranks.push_back(rank);
  trouble.detail = error.detail;
  return trouble;
}

std::string encode_trouble(const std::optional<Trouble>& trouble) {
  std::string bytes;
  wire::Writer out(bytes);
  write_trouble(out, trouble);
  return bytes;
}

std::string encode_offer(const Offer& offer) {
  std::string bytes;
  wire::Writer out(bytes);
  out.bytes(offer.call);
  write_trouble(out, offer.trouble);
  out.bytes(offer.kind);
  out.u8(offer.has_state ? 1 : 0);
  out.bytes(offer.file);
  out.u64(offer.bytes);
  return bytes;
}

std::optional<std::optional<Trouble>> decode_trouble(std::string_view bytes) {
  wire::Reader in(bytes);
  auto trouble = read_trouble(in);
  if (!in.ok() || !in.at_end()) return {};
  return trouble;
}

std::optional<Offer> decode_offer(std::string_view bytes) {
  wire::Reader in(bytes);
  Offer offer;
  offer.call = in.bytes();
  offer.trouble = read_trouble(in);
  offer.kind = in.bytes();
  offer.has_state = in.u8() != 0;
  offer.file = in.bytes();
  offer.bytes = in.u64();
  if (!in.ok() || !in.at_end()) return {};
  return offer;
}

}  // namespace muster::runtime
