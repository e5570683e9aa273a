#pragma once

#include <cstdint>
#include <string_view>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

/// A codec turns objects into bytes and back. It is a type with
///
///     static constexpr std::uint32_t id = ...;         // travels with every object
///     template <class T> static Result<std::string> encode(const T& object);
///     template <class T> static Result<T> decode(std::string_view bytes);
///
/// whose errors are `codec_failure`, and which never runs code that the bytes choose. Sender and
/// receiver must use the same id, or the receiver gets `codec_mismatch`. Ids below 256 are
/// Muster's own; an application's codecs take ids from 256 on.
namespace codec_id {
inline constexpr std::uint32_t raw = 1;
inline constexpr std::uint32_t cereal = 2;
inline constexpr std::uint32_t json = 3;
inline constexpr std::uint32_t nccl = 4;  ///< of nccl::unique_id alone: muster/nccl_id.h
inline constexpr std::uint32_t nccl_communicator = 5;  ///< of muster/nccl.h alone
inline constexpr std::uint32_t gloo_communicator = 6;  ///< of muster/gloo.h alone
}  // namespace codec_id

struct RawCodec;     ///< bytes as they are: muster/codec_raw.h
struct CerealCodec;  ///< cereal's portable binary format: muster/codec_cereal.h
struct JsonCodec;    ///< nlohmann's JSON, for people and other languages: muster/codec_json.h

/// The codec of `send_obj` and its kin when none is named. Include muster/codec_cereal.h to use
/// it, or name another one: `group.send_obj<muster::JsonCodec>(1, object)`.
using DefaultCodec = CerealCodec;

MUSTER_END_NAMESPACE
