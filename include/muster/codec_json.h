#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/json_numbers.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// Whether JsonCodec compares the numbers of a decoded T with those that came. To be specialized.
template <class T>
inline constexpr bool is_json_checked = true;
template <>
inline constexpr bool is_json_checked<nlohmann::json> = false;  // it is what came

/// JSON by nlohmann, for people and other languages.
///
/// Takes nlohmann::json itself and what it converts: numbers, strings in UTF-8, standard
/// containers, and structs with `to_json` and `from_json` (or NLOHMANN_DEFINE_TYPE_INTRUSIVE).
/// T must have a default constructor. nlohmann casts a number to T's type whether it fits or not.
/// So what was decoded is written as JSON again, and refused where an integer is another number
/// than came, or a number that was finite is not: 300 for a std::uint8_t, 1.5 or 1e99 for an int. A
/// type whose `to_json` writes other numbers than its `from_json` reads turns this off by
/// `is_json_checked<T> = false`, and looks at its numbers itself.
///
/// Bytes of any origin can be decoded: depth and number of values are checked before the text is
/// parsed, so that neither the stack nor the memory (at most 128 bytes per value and a small
/// multiple of the text) grows as the bytes choose.
struct JsonCodec {
  static constexpr std::uint32_t id = codec_id::json;

  static constexpr std::size_t bytes_max = std::size_t{64} << 20;
  static constexpr std::size_t values_max = std::size_t{4} << 20;
  static constexpr std::size_t depth_max = 128;

  /// errors  codec_failure (a string that is not UTF-8, or the object's own `to_json` threw)
  template <class T>
  static Result<std::string> encode(const T& object) {
    try {
      const nlohmann::json document = object;
      return document.dump();
    } catch (const std::exception& exception) {
      return failure(exception.what());
    } catch (...) {
      return failure("to_json threw something that is no std::exception");
    }
  }

  /// errors  codec_failure (no JSON, of another shape than T, over a limit: limit, actual)
  template <class T>
  static Result<T> decode(std::string_view bytes) {
    if (auto checked = check(bytes); !checked) return std::move(checked).error();
    try {
      const nlohmann::json document = nlohmann::json::parse(bytes);
      T object = document.template get<T>();
      if constexpr (is_json_checked<T> && std::is_constructible_v<nlohmann::json, const T&>) {
        if (!detail::keeps_numbers(document, nlohmann::json(object))) {
          return failure("a number does not fit into what it is for");
        }
      }
      return object;
    } catch (const std::exception& exception) {
      return failure(exception.what());
    } catch (...) {
      return failure("from_json threw something that is no std::exception");
    }
  }

 private:
  static Error failure(const std::string& why) {
    Error error;
    error.code = ErrorCode::codec_failure;
    error.detail = "json: " + why;
    return error;
  }

  static Error over(const char* what, std::size_t limit, std::size_t actual) {
    Error error = failure(std::string("too ") + what);
    error.limit = limit;
    error.actual = actual;
    return error;
  }

  /// Looks at brackets and commas only: what is no JSON is found by the parser.
  static Result<void> check(std::string_view text) {
    if (text.size() > bytes_max) return over("long", bytes_max, text.size());
    std::size_t depth = 0;
    std::size_t values = 1;
    bool in_string = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char character = text[at];
      if (in_string) {
        if (character == '\\') ++at;
        if (character == '"') in_string = false;
        continue;
      }
      if (character == '"') in_string = true;
      if (character == '[' || character == '{') {
        if (++depth > depth_max) return over("deep", depth_max, depth);
        ++values;
      }
      if ((character == ']' || character == '}') && depth > 0) --depth;
      if (character == ',' && ++values > values_max) return over("many", values_max, values);
    }
    if (values > values_max) return over("many", values_max, values);
    return {};
  }
};

MUSTER_END_NAMESPACE
