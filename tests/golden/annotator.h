#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/operation_table.h"

// Writes a message field by field and remembers what each byte is. Its encoding is written apart
// from src/wire on purpose: the golden test compares the two.

namespace muster::golden {

struct Note {
  std::size_t bytes = 0;  ///< how many this note is about
  std::string text;       ///< "name = value"
};

/// Text in quotes with other than printable ASCII as \xNN.
std::string quoted_text(std::string_view bytes);

class Annotator {
 public:
  const std::string& bytes() const { return bytes_; }
  const std::vector<Note>& notes() const { return notes_; }

  /// One field of a message; as the codecs of src/wire are called.
  template <class Field>
  void operator()(std::string_view name, const Field& field) {
    note(std::string(name), field);
  }

  template <class Item>
  void further(std::uint8_t tag, std::string_view name, const std::vector<Item>& items) {
    if (items.empty()) return;
    Annotator field;
    field.note(std::string(name), items);
    number("tag of " + std::string(name), tag, 1);
    number("length", field.bytes().size(), 4);
    append(field);
  }

  void further(std::uint8_t tag, std::string_view name, bool flag) {
    if (!flag) return;
    number("tag of " + std::string(name), tag, 1);
    number("length", 1, 4);
    number(std::string(name), 1, 1);
  }

  /// All that another one has written.
  void append(const Annotator& other);
  /// `count` bytes, little-endian.
  void number(const std::string& name, std::uint64_t value, std::size_t count,
              std::string_view meaning = {});
  void raw(const std::string& name, std::string_view bytes);
  void duration(const std::string& name, Duration value, std::size_t count);
  void error_fields(const Error& error);
  /// Of an event, behind its error.
  void ends_session(bool value);

  template <class Field>
  void note(const std::string& name, const std::optional<Field>& field) {
    number(name + " present", field ? 1 : 0, 1);
    if (field) note(name, *field);
  }
  template <class Item>
  void note(const std::string& name, const std::vector<Item>& items) {
    number(name + " count", items.size(), 4);
    for (std::size_t index = 0; index < items.size(); ++index) {
      note(name + "[" + std::to_string(index) + "]", static_cast<const Item&>(items[index]));
    }
  }
  template <class Message>
  requires wire::HasFields<Annotator, const Message>
  void note(const std::string& name, const Message& message) {
    prefix_.push_back(name + ".");
    wire::fields(*this, message);
    prefix_.pop_back();
  }
  void note(const std::string& name, const std::optional<Error>& error);
  void note(const std::string& name, bool value) { number(name, value ? 1 : 0, 1); }
  void note(const std::string& name, std::uint32_t value) { number(name, value, 4); }
  void note(const std::string& name, std::uint64_t value) { number(name, value, 8); }
  void note(const std::string& name, std::int64_t value);
  void note(const std::string& name, std::string_view value);
  void note(const std::string& name, Duration value) { duration(name, value, 8); }
  void note(const std::string& name, const ProcessId& id);
  void note(const std::string& name, const ProcessInfo& process);
  void note(const std::string& name, RankRange range);
  void note(const std::string& name, const std::pair<std::string_view, std::string_view>& pair);
  void note(const std::string& name, wire::Collective value);
  void note(const std::string& name, wire::ListKind value);
  void note(const std::string& name, wire::MemberState value);
  void note(const std::string& name, wire::RoundState value);
  void note(const std::string& name, GroupEventKind value);
  void note(const std::string& name, SettingKind value);

 private:
  void add(const std::string& name, std::string_view bytes, std::string_view value);

  std::string bytes_;
  std::vector<Note> notes_;
  std::vector<std::string> prefix_;
};

}  // namespace muster::golden
