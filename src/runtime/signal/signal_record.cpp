#include "runtime/signal/signal_record.h"

#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::runtime {

namespace {

constexpr std::string_view signal_heading = "muster signal 1\n";
constexpr std::size_t told_text_bytes_max = std::size_t{64} << 10;

}  // namespace

// The readers' marks come first, at places that each of them knows.
std::string encode(const SignalRecord& record) {
  std::string bytes(signal_heading);
  wire::Writer out(bytes);
  out.bytes(record.readers);
  out.bytes(record.job);
  out.u8(static_cast<std::uint8_t>(record.shared));
  out.u64(record.call);
  out.i32(record.world_rank);
  out.u32(record.pid);
  out.bytes(record.host);
  out.u8(record.is_locked ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(record.phase));
  out.u64(record.told_count);
  out.bytes(std::string_view(record.text).substr(0, told_text_bytes_max));
  return bytes;
}

std::optional<SignalRecord> decode_signal(std::string_view bytes) {
  if (!begins_as_signal(bytes)) return {};
  wire::Reader in(bytes.substr(signal_heading.size()));
  SignalRecord record;
  record.readers = in.bytes();
  record.job = in.bytes();
  record.shared = static_cast<detail::Shared>(in.u8());
  record.call = in.u64();
  record.world_rank = in.i32();
  record.pid = in.u32();
  record.host = in.bytes();
  record.is_locked = in.u8() != 0;
  const std::uint8_t phase = in.u8();
  record.told_count = in.u64();
  record.text = in.bytes();
  if (!in.ok() || !in.at_end() || phase > static_cast<std::uint8_t>(SignalRecord::Phase::failed))
    return {};
  record.phase = static_cast<SignalRecord::Phase>(phase);
  return record;
}

std::size_t mark_position(int rank) {
  return signal_heading.size() + sizeof(std::uint32_t) + static_cast<std::size_t>(rank);
}

std::vector<int> unread_ranks(const SignalRecord& record) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < record.readers.size(); ++rank)
    if (record.readers[rank] == unread_mark) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

bool begins_as_signal(std::string_view bytes) {
  return bytes.substr(0, signal_heading.size()) == signal_heading;
}

}  // namespace muster::runtime
