#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/c.h"
#include "muster/types.h"

// The arguments of calls. What breaks its rule is thrown as `Refused`, which becomes the call's
// error.

namespace muster::c {

struct Refused {
  std::string detail;
};

[[noreturn]] void refuse_null(const char* name);

template <class T>
T& needed(T* pointer, const char* name) {
  if (pointer == nullptr) refuse_null(name);
  return *pointer;
}

std::string_view bytes_of(muster_view view, const char* name);
std::optional<std::string_view> bytes_or_none(const muster_view* view, const char* name);
std::vector<std::string_view> keys_of(const muster_view* keys, std::size_t count);
std::vector<std::pair<std::string_view, std::string_view>> entries_of(const muster_entry* entries,
                                                                      std::size_t count);
/// Copies, as the C++ call asks for.
std::vector<std::string> objects_of(const muster_view* objects, std::size_t count);

std::string_view text_of(const char* text, const char* name);
/// NULL: empty.
std::string text_or_none(const char* text);

/// 32 hexadecimal digits.
ProcessId process_id_of(const char* text);

/// 0: none.
std::optional<Duration> time_or_none(std::int64_t microseconds);

/// Copies a struct of the application into a zeroed one of this library, whatever the version that
/// either was compiled with.
void copy_known(void* known, std::size_t known_bytes, const void* given, const char* name);

template <class Options>
Options options_of(const Options* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<Options>);
  Options known{};
  if (given != nullptr) copy_known(&known, sizeof(Options), given, name);
  return known;
}

/// The other way round: what the application's struct has room for.
///
/// returns  false if there is none
bool fill_bytes(void* filled, const void* known, std::size_t known_bytes) noexcept;

template <class Struct>
bool fill(Struct* filled, const Struct& known) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>);
  return filled != nullptr && fill_bytes(filled, &known, sizeof(Struct));
}

}  // namespace muster::c
