#pragma once

// Between the calls of a group on objects and those on bytes: what a codec must be, and what its
// errors say. For muster/process_group.h and muster/asio.h alone.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/call.h"
#include "muster/config.h"
#include "muster/error.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// The type that is sent for an object of type T: std::string for views of text, else T.
template <class T>
using ObjectOf = std::conditional_t<std::is_convertible_v<const T&, const char*> ||
                                        std::is_same_v<T, std::string_view>,
                                    std::string, T>;

namespace detail {

template <class>
inline constexpr bool is_never = false;

/// Of the arguments of a send or a receive: whether the peer is no Rank, or a number stands where a
/// Tag or a timeout is due.
template <class Peer, class... Rest>
inline constexpr bool is_misplaced =
    !std::is_same_v<Peer, Rank> || (std::is_arithmetic_v<Rest> || ...);

template <class T, class = void>
inline constexpr bool is_defined = false;
template <class T>
inline constexpr bool is_defined<T, std::void_t<decltype(sizeof(T))>> = true;

/// Says once per codec what is wrong with it.
template <class Codec>
struct CodecCheck {
  static_assert(is_defined<Codec>,
                "this codec is declared and not defined here: include its header, such as "
                "muster/codec_cereal.h for the default one");
};

/// A codec as the calls use it.
template <class Codec>
struct ObjectCodec {
  static constexpr bool is_here = is_defined<Codec>;

  static constexpr std::uint32_t id() {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::id;
    } else {
      return 0;
    }
  }

  template <class T>
  static Result<std::string> encode(const T& object) {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::template encode<ObjectOf<T>>(object);
    } else {
      return Error();
    }
  }

  template <class T>
  static Result<T> decode(std::string_view bytes) {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::template decode<T>(bytes);
    } else {
      return Error();
    }
  }

  /// The objects, or the error of the first that the codec refuses.
  template <class T>
  static Result<std::vector<std::string>> encode_all(const std::vector<T>& objects) {
    std::vector<std::string> all;
    all.reserve(objects.size());
    for (const T& object : objects) {
      auto bytes = encode<T>(object);
      if (!bytes) return std::move(bytes).error();
      all.push_back(*std::move(bytes));
    }
    return all;
  }
};

/// Names the rank whose object is of another type than its receiver's.
inline Error blamed(Error error, int rank) {
  if (error.code != ErrorCode::codec_mismatch || !error.rank_ranges.empty() || rank < 0) {
    return error;
  }
  RankReport report;
  report.rank = rank;
  report.joined = true;
  error.ranks.push_back(std::move(report));
  error.rank_ranges.push_back({rank, rank});
  return error;
}

/// What `combine` makes of the objects of all ranks, in their order.
template <class T, class Combine>
T folded(std::vector<T> all, Combine& combine) {
  T made = std::move(all.front());
  for (std::size_t index = 1; index < all.size(); ++index) {
    T next = std::move(all[index]);
    made = combine(std::move(made), std::move(next));
  }
  return made;
}

/// What errors of a codec say beside what the codec says.
class ObjectCall {
 public:
  /// happened  whether the call did, when the codec refuses its result
  template <class Group>
  ObjectCall(const Group& group, std::string_view operation, Happened happened = Happened::maybe,
             Rank root = Rank(-1))
      : operation_(operation),
        group_(group.name()),
        epoch_(group.epoch()),
        happened_(happened),
        root_(root.number) {}

  Error about(Error error) const {
    error.operation = operation_;
    if (error.decided_by.empty()) error.decided_by = "client";
    if (error.group.empty()) error.group = group_;
    if (error.epoch == 0) error.epoch = epoch_;
    return error;
  }

  /// What `make` returns. What it throws is an error, too: it would pass the handler, which would
  /// then wait for ever.
  template <class Make>
  std::invoke_result_t<Make&> caught(Make make) const {
    Error thrown;
    thrown.code = ErrorCode::codec_failure;
    MUSTER_TRY { return make(); }
    MUSTER_CATCH_ALL { thrown.detail = current_exception_text(); }
    thrown.happened = happened_;
    return about(std::move(thrown));
  }

  template <class Codec, class T>
  Result<T> decode(std::string_view bytes) const {
    Result<T> object =
        caught([&] { return Result<T>(detail::ObjectCodec<Codec>::template decode<T>(bytes)); });
    if (object.has_value()) return object;
    object.error().happened = happened_;
    return about(std::move(object).error());
  }

  /// Received, if it can be decoded.
  template <class Codec, class T>
  Result<Received<T>> received(Result<Delivery>&& result) const {
    if (!result) return std::move(result).error();
    Delivery delivery = *std::move(result);  // it is over before the handler runs
    Result<T> object = decode<Codec, T>(delivery.bytes());
    if (!object.has_value()) {
      object.error().stream = delivery.position();
      return blamed(std::move(object).error(), delivery.position().source);
    }
    return Received<T>{*std::move(object), delivery.accept().sequence};
  }

  template <class Codec, class T>
  Result<T> decode_one(Result<std::string>&& bytes) const {
    if (!bytes) return std::move(bytes).error();
    Result<T> object = decode<Codec, T>(*bytes);
    if (!object.has_value()) return blamed(std::move(object).error(), root_);
    return object;
  }

  template <class Codec, class T>
  Result<std::vector<T>> decode_all(Result<std::vector<std::string>>&& all) const {
    if (!all) return std::move(all).error();
    std::vector<T> objects;
    objects.reserve(all->size());
    for (const std::string& bytes : *all) {
      Result<T> object = decode<Codec, T>(bytes);
      if (!object.has_value()) {
        return blamed(std::move(object).error(), static_cast<int>(objects.size()));
      }
      objects.push_back(*std::move(object));
    }
    return objects;
  }

  /// What `combine` makes of them, in the order of ranks.
  template <class Codec, class T, class Combine>
  Result<T> reduced(Result<std::vector<std::string>>&& encoded, Combine& combine) const {
    Result<std::vector<T>> all = decode_all<Codec, T>(std::move(encoded));
    if (!all) return about(std::move(all).error());
    return caught([&] { return Result<T>(folded(*std::move(all), combine)); });
  }

 private:
  std::string operation_;
  std::string group_;
  std::uint64_t epoch_;
  Happened happened_;
  int root_;
};

/// Of a collective without an object, at its root.
inline Error root_needs(const char* what) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.happened = Happened::no;
  error.detail = std::string("the root gives ") + what + "; this form is for the other ranks";
  return error;
}

/// A call that ends with `error`, where handlers run, before it has begun: nobody has this rank.
template <class T, class Group>
Call refused(Group& group, Error error, Handler<T> handler) {
  return group.recv_bytes_async(
      Rank(-1), 0, Tag(), Duration(0),
      [error = std::move(error), handler = std::move(handler)](const auto&) {
        if (handler) handler(error);
      });
}

}  // namespace detail

MUSTER_END_NAMESPACE
