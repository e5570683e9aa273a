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
/// Its errors are `codec_failure`. Decoding must never run code that the bytes choose. Sender and
/// receiver must use the same id, else the receiver gets `codec_mismatch`. Ids below 256 belong to
/// Muster; codecs of applications use ids from 256 on.
namespace codec_id {
inline constexpr std::uint32_t raw = 1;
inline constexpr std::uint32_t cereal = 2;
inline constexpr std::uint32_t json = 3;
inline constexpr std::uint32_t nccl = 4;  ///< only for nccl::unique_id: muster/nccl_id.h
inline constexpr std::uint32_t nccl_communicator = 5;  ///< only for muster/nccl.h
inline constexpr std::uint32_t gloo_communicator = 6;  ///< only for muster/gloo.h
inline constexpr std::uint32_t tensor = 7;             ///< only for muster/tensor.h
inline constexpr std::uint32_t msgpack = 8;            ///< of the Python package
inline constexpr std::uint32_t pickle = 9;             ///< of the Python package
}  // namespace codec_id

struct RawCodec;     ///< bytes as they are: muster/codec_raw.h
struct CerealCodec;  ///< cereal's portable binary format: muster/codec_cereal.h
struct JsonCodec;    ///< nlohmann's JSON, for people and other languages: muster/codec_json.h

/// The codec of `send_obj` and similar calls if none is named. Include muster/codec_cereal.h to use
/// it, or name another one: `group.send_obj<muster::JsonCodec>(1, object)`.
using DefaultCodec = CerealCodec;

MUSTER_END_NAMESPACE
