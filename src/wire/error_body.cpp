#include "wire/error_body.h"

#include <algorithm>

#include "wire/codec.h"
#include "wire/error_tags.h"
#include "wire/failure.h"

namespace muster::wire {
namespace {

/// Writes the fields that are set; what is empty or zero is left out.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : writer_(out) {}

  void text(ErrorTag tag, std::string_view value) {
    if (value.empty()) return;
    writer_.u8(static_cast<std::uint8_t>(tag));
    writer_.bytes(value);
  }
  void number(ErrorTag tag, std::uint64_t value) {
    if (value == 0) return;
    head(tag, 8);
    writer_.u64(value);
  }
  void rank(ErrorTag tag, int value) {
    if (value < 0) return;
    head(tag, 4);
    writer_.i32(value);
  }
  void cause(LossCause value) {
    if (value == LossCause::none) return;
    head(ErrorTag::cause, 1);
    writer_.u8(static_cast<std::uint8_t>(value));
  }
  void report(const RankReport& report) {
    const std::size_t length_at = head(ErrorTag::rank, 0);
    writer_.i32(report.rank);
    writer_.u8(report.joined ? 1 : 0);
    put_process(writer_, report.process);
    writer_.u8(report.silence ? 1 : 0);
    if (report.silence) writer_.u64(wire_duration(*report.silence));
    writer_.bytes(report.called);
    if (report.cause != LossCause::none) {
      writer_.u8(static_cast<std::uint8_t>(RankTag::cause));
      writer_.u32(1);
      writer_.u8(static_cast<std::uint8_t>(report.cause));
    }
    writer_.patch_u32(length_at, static_cast<std::uint32_t>(writer_.position() - length_at - 4));
  }
  void ranges(const std::vector<RankRange>& ranges) {
    if (ranges.empty()) return;
    head(ErrorTag::rank_ranges, static_cast<std::uint32_t>(4 + 8 * ranges.size()));
    writer_.u32(static_cast<std::uint32_t>(ranges.size()));
    for (const RankRange range : ranges) put_range(writer_, range);
  }

 private:
  std::size_t head(ErrorTag tag, std::uint32_t length) {
    writer_.u8(static_cast<std::uint8_t>(tag));
    writer_.u32(length);
    return writer_.position() - 4;
  }

  Writer writer_;
};

bool get_bool(Reader& reader) {
  const std::uint8_t byte = reader.u8();
  if (byte > 1) reader.fail();
  return byte == 1;
}

RankReport get_report(Reader& reader) {
  RankReport report;
  report.rank = reader.i32();
  if (report.rank < 0) reader.fail();
  report.joined = get_bool(reader);
  report.process = get_process(reader);
  if (get_bool(reader)) report.silence = duration_from_wire(reader.u64(), duration_max);
  report.called = reader.bytes();
  while (!reader.at_end()) {
    const std::uint8_t tag = reader.u8();
    Reader field(reader.bytes());
    if (static_cast<RankTag>(tag) != RankTag::cause) continue;  // of a newer version
    report.cause = static_cast<LossCause>(field.u8());
    if (!field.ok() || !field.at_end()) reader.fail();
  }
  return report;
}

std::vector<RankRange> get_ranges(Reader& reader) {
  std::vector<RankRange> ranges(reader.count(item_bytes_min<RankRange>));
  for (RankRange& range : ranges) range = get_range(reader);
  return ranges;
}

std::string get_text(Reader& reader) { return std::string(reader.raw(reader.remaining())); }

Duration get_duration(Reader& reader) { return duration_from_wire(reader.u64(), duration_max); }

/// Reads one field; returns whether its bytes are what its tag says.
///
/// other  reads a field that no error has
template <class Other>
bool get_field(Error& error, std::uint8_t tag, std::string_view bytes, const Other& other) {
  Reader reader(bytes);
  switch (static_cast<ErrorTag>(tag)) {
    case ErrorTag::operation: error.operation = get_text(reader); break;
    case ErrorTag::group: error.group = get_text(reader); break;
    case ErrorTag::epoch: error.epoch = reader.u64(); break;
    case ErrorTag::round: error.round = reader.u64(); break;
    case ErrorTag::elapsed: error.elapsed = get_duration(reader); break;
    case ErrorTag::decided_by: error.decided_by = get_text(reader); break;
    case ErrorTag::decided_by_rank: error.decided_by_rank = reader.i32(); break;
    case ErrorTag::decided_by_timeout: error.decided_by_timeout = get_duration(reader); break;
    case ErrorTag::where: error.where = get_text(reader); break;
    case ErrorTag::rank:
      if (error.ranks.size() >= ranks_in_full_max) return true;
      error.ranks.push_back(get_report(reader));
      break;
    case ErrorTag::rank_ranges: error.rank_ranges = get_ranges(reader); break;
    case ErrorTag::cause: error.cause = static_cast<LossCause>(reader.u8()); break;
    case ErrorTag::expected: error.expected = reader.u64(); break;
    case ErrorTag::actual: error.actual = reader.u64(); break;
    case ErrorTag::limit: error.limit = reader.u64(); break;
    case ErrorTag::detail: error.detail = get_text(reader); break;
    default: return other(tag, bytes);
  }
  return reader.ok() && reader.at_end();
}

/// Reads all that is left; returns whether it was whole.
template <class Other>
bool get_fields(Error& error, Reader& reader, const Other& other) {
  while (reader.ok() && !reader.at_end()) {
    const std::uint8_t tag = reader.u8();
    const std::string_view bytes = reader.bytes();
    if (!reader.ok() || !get_field(error, tag, bytes, other)) return false;
  }
  return reader.ok();
}

}  // namespace

void append_error(std::string& out, const Error& error) {
  FieldWriter writer(out);
  writer.text(ErrorTag::operation, error.operation);
  writer.text(ErrorTag::group, error.group);
  writer.number(ErrorTag::epoch, error.epoch);
  writer.number(ErrorTag::round, error.round);
  writer.number(ErrorTag::elapsed, wire_duration(error.elapsed));
  writer.text(ErrorTag::decided_by, error.decided_by);
  writer.rank(ErrorTag::decided_by_rank, error.decided_by_rank);
  writer.number(ErrorTag::decided_by_timeout, wire_duration(error.decided_by_timeout));
  writer.text(ErrorTag::where, error.where);
  const std::size_t in_full = std::min(error.ranks.size(), ranks_in_full_max);
  for (std::size_t index = 0; index < in_full; ++index) writer.report(error.ranks[index]);
  writer.ranges(error.rank_ranges);
  writer.cause(error.cause);
  writer.number(ErrorTag::expected, error.expected);
  writer.number(ErrorTag::actual, error.actual);
  writer.number(ErrorTag::limit, error.limit);
  writer.text(ErrorTag::detail, error.detail);
}

std::optional<Error> decode_error(std::uint16_t code, std::string_view body) {
  Error error;
  error.code = static_cast<ErrorCode>(code);
  Reader reader(body);
  const auto skip = [](std::uint8_t, std::string_view) { return true; };  // of a newer version
  if (!get_fields(error, reader, skip)) return std::nullopt;
  return error;
}

void append_event(std::string& out, const Event& event) {
  Writer writer(out);
  writer.u64(event.epoch);
  writer.u16(static_cast<std::uint16_t>(event.error.code));
  append_error(out, event.error);
  if (!event.ends_session) return;
  writer.u8(static_cast<std::uint8_t>(ErrorTag::ends_session));
  writer.u32(1);
  writer.u8(*event.ends_session ? 1 : 0);
}

Result<Event> decode_event(std::uint16_t kind, std::string_view body) {
  Reader reader(body);
  Event event;
  event.kind = static_cast<EventKind>(kind);
  event.epoch = reader.u64();
  event.error.code = static_cast<ErrorCode>(reader.u16());
  const bool is_whole = get_fields(event.error, reader, [&event](std::uint8_t tag, auto bytes) {
    if (static_cast<ErrorTag>(tag) != ErrorTag::ends_session) return true;  // of a newer version
    Reader field(bytes);
    event.ends_session = get_bool(field);
    return field.ok() && field.at_end();
  });
  if (!is_whole) return protocol_error("the bytes are no event");
  return event;
}

}  // namespace muster::wire
