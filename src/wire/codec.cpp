#include "wire/codec.h"

#include <limits>

namespace muster::wire {
namespace {

std::string get_name(Reader& reader) {
  const std::string_view name = reader.bytes();
  if (name.size() > name_bytes_max) {
    reader.fail();
    return {};
  }
  return std::string(name);
}

}  // namespace

void put_process(Writer& writer, const ProcessInfo& process) {
  for (const std::uint8_t byte : process.id.bytes) writer.u8(byte);
  writer.u32(process.pid);
  writer.bytes(std::string_view(process.host).substr(0, name_bytes_max));
  writer.bytes(std::string_view(process.label).substr(0, name_bytes_max));
}

ProcessInfo get_process(Reader& reader) {
  ProcessInfo process;
  for (std::uint8_t& byte : process.id.bytes) byte = reader.u8();
  process.pid = reader.u32();
  process.host = get_name(reader);
  process.label = get_name(reader);
  return process;
}

void put_range(Writer& writer, RankRange range) {
  writer.i32(range.first);
  writer.i32(range.last);
}

RankRange get_range(Reader& reader) {
  const RankRange range{reader.i32(), reader.i32()};
  // Whoever walks a range may count one past its last rank.
  if (range.first < 0 || range.last < range.first ||
      range.last == std::numeric_limits<std::int32_t>::max()) {
    reader.fail();
    return {};
  }
  return range;
}

void Encoder::put(const std::optional<Error>& error) {
  const Error& told = error ? *error : Error{};
  std::string body;
  append_error(body, told);
  writer_.u16(static_cast<std::uint16_t>(told.code));
  writer_.bytes(body);
}

void Decoder::get(std::optional<Error>& error) {
  const std::uint16_t code = reader_.u16();
  error = decode_error(code, reader_.bytes());
  if (!error) reader_.fail();
}

void skip_optional_fields(Reader& reader) {
  while (!reader.at_end()) {
    reader.u8();
    reader.bytes();
  }
}

}  // namespace muster::wire
