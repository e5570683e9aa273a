#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"
#include "wire/error_body.h"
#include "wire/fields.h"
#include "wire/hello.h"
#include "wire/reader.h"
#include "wire/writer.h"

// The two codecs that walk the field lists of messages, see wire/fields.h.

namespace muster::wire {

inline std::uint64_t wire_duration(Duration duration) {
  return duration > Duration::zero() ? static_cast<std::uint64_t>(duration.count()) : 0;
}

inline Duration duration_from_wire(std::uint64_t microseconds, Duration max) {
  const auto limit = static_cast<std::uint64_t>(max.count());
  return Duration(static_cast<Duration::rep>(microseconds < limit ? microseconds : limit));
}

void put_process(Writer& writer, const ProcessInfo& process);
ProcessInfo get_process(Reader& reader);
void put_range(Writer& writer, RankRange range);
RankRange get_range(Reader& reader);

/// Writes each field that it is called with.
class Encoder {
 public:
  explicit Encoder(std::string& out) : writer_(out) {}

  template <class Field>
  void operator()(std::string_view, const Field& field) {
    put(field);
  }
  template <class Item>
  void further(std::uint8_t tag, std::string_view, const std::vector<Item>& items) {
    if (items.empty()) return;
    writer_.u8(tag);
    const std::size_t length_at = writer_.position();
    writer_.u32(0);
    put(items);
    writer_.patch_u32(length_at, static_cast<std::uint32_t>(writer_.position() - length_at - 4));
  }
  void further(std::uint8_t tag, std::string_view, bool flag) {
    if (!flag) return;
    writer_.u8(tag);
    writer_.u32(1);
    put(flag);
  }

 private:
  void put(bool value) { writer_.u8(value ? 1 : 0); }
  void put(std::uint32_t value) { writer_.u32(value); }
  void put(std::uint64_t value) { writer_.u64(value); }
  void put(std::int64_t value) { writer_.i64(value); }
  void put(std::string_view value) { writer_.bytes(value); }
  void put(Duration value) { writer_.u64(wire_duration(value)); }
  void put(const ProcessId& id) {
    writer_.raw({reinterpret_cast<const char*>(id.bytes.data()), 16});
  }
  void put(const ProcessInfo& process) { put_process(writer_, process); }
  void put(RankRange range) { put_range(writer_, range); }
  void put(const std::pair<std::string_view, std::string_view>& pair) {
    writer_.bytes(pair.first);
    writer_.bytes(pair.second);
  }
  void put(const std::optional<Error>& error);

  template <class Enum>
  requires std::is_enum_v<Enum>
  void put(Enum value) { writer_.u8(static_cast<std::uint8_t>(value)); }
  template <class Item>
  void put(const std::optional<Item>& item) {
    put(item.has_value());
    if (item) put(*item);
  }
  template <class Item>
  void put(const std::vector<Item>& items) {
    writer_.u32(static_cast<std::uint32_t>(items.size()));
    for (const auto& item : items) put(item);
  }
  void put(const std::vector<bool>& items) {
    writer_.u32(static_cast<std::uint32_t>(items.size()));
    for (const bool item : items) put(item);
  }
  template <class Message>
  requires HasFields<Encoder, const Message>
  void put(const Message& message) { fields(*this, message); }

  Writer writer_;
};

/// Reads each field that it is called with; the reader remembers whether all was well.
class Decoder {
 public:
  explicit Decoder(Reader& reader) : reader_(reader) {}

  template <class Field>
  void operator()(std::string_view, Field& field) {
    get(field);
  }
  template <class Item>
  void further(std::uint8_t tag, std::string_view, std::vector<Item>& items) {
    items.clear();
    get_further(tag, items);
  }
  void further(std::uint8_t tag, std::string_view, bool& flag) {
    flag = false;
    get_further(tag, flag);
  }

 private:
  template <class Field>
  void get_further(std::uint8_t tag, Field& value) {
    Reader rest = reader_;  // what is there is skipped later, with the tags that are not known
    while (!rest.at_end()) {
      const bool is_it = rest.u8() == tag;
      Reader field(rest.bytes());
      if (!is_it || !rest.ok()) continue;
      Decoder(field).get(value);
      if (!field.ok() || !field.at_end()) reader_.fail();
      return;
    }
  }
  void get(bool& value) {
    const std::uint8_t byte = reader_.u8();
    if (byte > 1) reader_.fail();
    value = byte == 1;
  }
  void get(std::uint32_t& value) { value = reader_.u32(); }
  void get(std::uint64_t& value) { value = reader_.u64(); }
  void get(std::int64_t& value) { value = reader_.i64(); }
  void get(std::string_view& value) { value = reader_.bytes(); }
  void get(Duration& value) { value = duration_from_wire(reader_.u64(), duration_max); }
  void get(ProcessId& id) {
    const std::string_view bytes = reader_.raw(id.bytes.size());
    for (std::size_t index = 0; index < bytes.size(); ++index) {
      id.bytes[index] = static_cast<std::uint8_t>(bytes[index]);
    }
  }
  void get(ProcessInfo& process) { process = get_process(reader_); }
  void get(RankRange& range) { range = get_range(reader_); }
  void get(std::pair<std::string_view, std::string_view>& pair) {
    pair.first = reader_.bytes();
    pair.second = reader_.bytes();
  }
  void get(std::optional<Error>& error);

  template <class Enum>
  requires std::is_enum_v<Enum>
  void get(Enum& value) {
    const std::uint8_t byte = reader_.u8();
    if (byte < first_number(Enum{}) || byte > last_number(Enum{})) return reader_.fail();
    value = static_cast<Enum>(byte);
  }
  template <class Item>
  void get(std::optional<Item>& item) {
    bool present = false;
    get(present);
    if (present) return get(item.emplace());
    item.reset();
  }
  template <class Item>
  void get(std::vector<Item>& items) {
    const std::uint32_t count = reader_.count(item_bytes_min<Item>);
    if (count == 0) return items.clear();  // as the values of a barrier
    items.resize(count);
    for (Item& item : items) get(item);
  }
  void get(std::vector<bool>& items) {
    items.resize(reader_.count(item_bytes_min<bool>));
    for (auto item : items) {
      bool present = false;
      get(present);
      item = present;
    }
  }
  template <class Message>
  requires HasFields<Decoder, Message>
  void get(Message& message) { fields(*this, message); }

  Reader& reader_;
};

/// Reads `[u8 tag, u32 length, bytes]*` to the end; `further` has read what this version knows.
void skip_optional_fields(Reader& reader);

}  // namespace muster::wire
