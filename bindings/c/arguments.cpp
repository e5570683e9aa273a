#include "arguments.h"

#include <algorithm>
#include <cstring>

namespace muster::c {
namespace {

/// No struct is larger: what says so was not prepared.
constexpr std::size_t struct_bytes_max = 4096;

/// -1: it is none.
int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

void refuse_null(const char* name) { throw Refused{std::string(name) + " is NULL"}; }

std::string_view bytes_of(muster_view view, const char* name) {
  if (view.data == nullptr) {
    if (view.size != 0) {
      throw Refused{std::string(name) + " has a size of " + std::to_string(view.size) +
                    ", and its data is NULL"};
    }
    return {};
  }
  return {static_cast<const char*>(view.data), view.size};
}

std::optional<std::string_view> bytes_or_none(const muster_view* view, const char* name) {
  if (view == nullptr) return std::nullopt;
  return bytes_of(*view, name);
}

std::vector<std::string_view> keys_of(const muster_view* keys, std::size_t count) {
  if (count != 0) needed(keys, "keys");
  std::vector<std::string_view> all;
  all.reserve(count);
  for (std::size_t index = 0; index < count; ++index) all.push_back(bytes_of(keys[index], "a key"));
  return all;
}

std::vector<std::pair<std::string_view, std::string_view>> entries_of(const muster_entry* entries,
                                                                      std::size_t count) {
  if (count != 0) needed(entries, "entries");
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    all.emplace_back(bytes_of(entries[index].key, "a key"),
                     bytes_of(entries[index].value, "a value"));
  }
  return all;
}

std::vector<std::string> objects_of(const muster_view* objects, std::size_t count) {
  if (count != 0) needed(objects, "objects");
  std::vector<std::string> all;
  all.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    all.emplace_back(bytes_of(objects[index], "an object"));
  }
  return all;
}

std::string_view text_of(const char* text, const char* name) { return &needed(text, name); }

std::string text_or_none(const char* text) { return text == nullptr ? std::string() : text; }

ProcessId process_id_of(const char* text) {
  const std::string_view digits = text_of(text, "process_id");
  ProcessId id;
  bool is_id = digits.size() == 2 * id.bytes.size();
  for (std::size_t index = 0; is_id && index < id.bytes.size(); ++index) {
    const int high = digit_of(digits[2 * index]);
    const int low = digit_of(digits[2 * index + 1]);
    is_id = high >= 0 && low >= 0;
    id.bytes[index] = static_cast<std::uint8_t>((high << 4) + low);
  }
  if (!is_id) throw Refused{"process_id is not 32 hexadecimal digits"};
  return id;
}

std::optional<Duration> time_or_none(std::int64_t microseconds) {
  if (microseconds == 0) return std::nullopt;
  return Duration(microseconds);
}

void copy_known(void* known, std::size_t known_bytes, const void* given, const char* name) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size) || size > struct_bytes_max) {
    throw Refused{std::string(name) + " says that its size is " + std::to_string(size) +
                  "; prepare it with MUSTER_INIT"};
  }
  if (size > known_bytes) {
    const char* const further = static_cast<const char*>(given) + known_bytes;
    if (!std::all_of(further, further + (size - known_bytes),
                     [](char byte) { return byte == 0; })) {
      throw Refused{std::string(name) + " sets a field that this version of the library lacks"};
    }
  }
  std::memcpy(known, given, std::min(size, known_bytes));
}

bool fill_bytes(void* filled, const void* known, std::size_t known_bytes) noexcept {
  std::size_t size = 0;
  std::memcpy(&size, filled, sizeof(size));
  if (size < sizeof(size) || size > struct_bytes_max) return false;
  std::memcpy(filled, known, std::min(size, known_bytes));
  if (size > known_bytes) {
    std::memset(static_cast<char*>(filled) + known_bytes, 0, size - known_bytes);
  }
  std::memcpy(filled, &size, sizeof(size));
  return true;
}

}  // namespace muster::c
