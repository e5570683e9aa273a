#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/cereal_archives.h"
#include "muster/detail/cereal_form.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// The default codec: cereal's portable binary format (a byte that says little-endian, then
/// numbers as they are and containers as a 64-bit size and their elements) with a fingerprint of
/// the type: that first byte is 3, and 8 bytes follow it. Objects without one, as cereal itself
/// writes them, are taken, too.
///
/// The fingerprint is of the declared types of all fields, in their order, not of their names. A
/// receiver of another type gets codec_mismatch. A type that changes while programs of several
/// versions run says `static constexpr std::uint64_t schema_id = ...;`: then this number is what is
/// compared. To find the fields, `serialize` or `load` runs once per type on an object that was
/// just made, and reads zeros. docs/semantics.md has the rules ("Types of objects").
///
/// Takes numbers, enums, std::string, vector, array, map, unordered_map, set, unordered_set,
/// pair, tuple, optional, variant, std::chrono, and structs that have cereal's
/// `template <class Archive> void serialize(Archive& archive)`; further types of cereal with its
/// header included. T must have a default constructor.
///
/// Bytes of any origin can be decoded: a size is compared with the bytes that are left before
/// anything is allocated, so that memory stays within a small multiple of the bytes that came;
/// nesting is bounded; bytes left over are an error; classes that are chosen by name
/// (cereal/types/polymorphic.hpp) are not taken. The price: an element of a container takes at
/// least one byte, so a container of empty structs does not come back.
struct CerealCodec {
  static constexpr std::uint32_t id = codec_id::cereal;

  /// Structs and containers inside each other, about two per level that one writes.
  static constexpr int depth_max = detail::cereal_depth_max;

  /// errors  codec_failure (nested too deeply, or the object's own `serialize` threw)
  template <class T>
  static Result<std::string> encode(const T& object) {
    static_cast<void>(detail::CerealMadeCheck<T>());
    try {
      std::string bytes;
      detail::CerealWriter archive(bytes, detail::cereal_fingerprint<T>());
      archive(object);
      return bytes;
    } catch (const std::exception& exception) {
      return failure(exception.what());
    } catch (...) {
      return failure("serialize threw something that is no std::exception");
    }
  }

  /// errors  codec_failure; codec_mismatch (expected, actual: the fingerprints of T and of the
  ///         sender's type)
  template <class T>
  static Result<T> decode(std::string_view bytes) {
    try {
      detail::CerealReader archive(bytes);
      static_cast<void>(detail::CerealMadeCheck<T>());
      if constexpr (std::is_default_constructible_v<T>) {
        const auto expected = detail::cereal_fingerprint<T>();
        if (archive.fingerprint() && expected && *archive.fingerprint() != *expected) {
          return mismatch(*expected, *archive.fingerprint());
        }
        T object{};
        archive(object);
        if (archive.remaining() != 0) {
          return failure(std::to_string(archive.remaining()) + " bytes are left over");
        }
        return object;
      } else {
        return failure("T has no default constructor");
      }
    } catch (const std::exception& exception) {
      return failure(exception.what());
    } catch (...) {
      return failure("serialize threw something that is no std::exception");
    }
  }

 private:
  static Error mismatch(std::uint64_t expected, std::uint64_t actual) {
    Error error;
    error.code = ErrorCode::codec_mismatch;
    error.expected = expected;
    error.actual = actual;
    error.detail = "cereal: the object was sent as another type, with other fields";
    return error;
  }

  static Error failure(const std::string& why) {
    Error error;
    error.code = ErrorCode::codec_failure;
    error.detail = "cereal: " + why;
    return error;
  }
};

MUSTER_END_NAMESPACE
