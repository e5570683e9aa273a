#pragma once

// The callback forms of the calls on objects, for muster/process_group.h alone, which says what the
// calls promise.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "muster/call.h"
#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/object_calls.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// Of `Group`, which derives from it. Objects are encoded before the function returns, and decoded
/// where handlers run. What a codec or `combine` throws there ends the call with codec_failure.
template <class Group>
class ObjectCallbacks {
 public:
  template <class Codec = DefaultCodec, class T>
  Call send_obj_async(Rank destination, const T& object, Tag tag, Duration timeout,
                      Handler<void> handler) {
    auto bytes = ObjectCodec<Codec>::encode(object);
    if (!bytes) {
      return refused<void>(self(), self().about_send(destination, tag, std::move(bytes).error()),
                           std::move(handler));
    }
    return self().send_bytes_async(destination, ObjectCodec<Codec>::id(), *bytes, tag, timeout,
                                   std::move(handler));
  }

  template <class T, class Codec = DefaultCodec>
  Call recv_obj_async(Rank source, Tag tag, Duration timeout, Handler<T> handler) {
    return recv_numbered_obj_async<T, Codec>(
        source, tag, timeout, [handler = std::move(handler)](Result<Received<T>> received) {
          if (!handler) return;
          if (!received) return handler(std::move(received).error());
          handler(std::move(received->object));
        });
  }

  template <class T, class Codec = DefaultCodec>
  Call recv_numbered_obj_async(Rank source, Tag tag, Duration timeout,
                               Handler<Received<T>> handler) {
    return self().recv_delivery_async(
        source, ObjectCodec<Codec>::id(), tag, timeout,
        then<Delivery>(
            std::move(handler),
            [call = ObjectCall(self(), "recv_obj", Happened::unsaid)](Result<Delivery>&& delivery) {
              return call.template received<Codec, T>(std::move(delivery));
            }));
  }

  template <class Codec = DefaultCodec, class T>
  Call broadcast_obj_async(const T& object, Rank root, Duration timeout,
                           Handler<ObjectOf<T>> handler) {
    Result<std::string> bytes = std::string();
    if (root.number == self().rank()) bytes = ObjectCodec<Codec>::encode(object);
    return begin_broadcast<Codec, ObjectOf<T>>(std::move(bytes), root, timeout, std::move(handler));
  }
  template <class T, class Codec = DefaultCodec>
  Call broadcast_obj_async(Rank root, Duration timeout, Handler<T> handler) {
    Result<std::string> nothing = std::string();
    if (root.number == self().rank()) nothing = root_needs("an object");
    return begin_broadcast<Codec, T>(std::move(nothing), root, timeout, std::move(handler));
  }

  template <class Codec = DefaultCodec, class T>
  Call all_gather_obj_async(const T& object, Duration timeout,
                            Handler<std::vector<ObjectOf<T>>> handler) {
    auto bytes = ObjectCodec<Codec>::encode(object);
    if (!bytes) return refuse("all_gather_obj", std::move(bytes).error(), std::move(handler));
    return self().all_gather_bytes_async(
        *bytes, ObjectCodec<Codec>::id(), timeout,
        then<std::vector<std::string>>(std::move(handler),
                                       decode_all<Codec, ObjectOf<T>>("all_gather_obj")));
  }

  template <class Codec = DefaultCodec, class T>
  Call gather_obj_async(const T& object, Rank root, Duration timeout,
                        Handler<std::vector<ObjectOf<T>>> handler) {
    auto bytes = ObjectCodec<Codec>::encode(object);
    if (!bytes) return refuse("gather_obj", std::move(bytes).error(), std::move(handler));
    return self().gather_bytes_async(
        *bytes, ObjectCodec<Codec>::id(), root, timeout,
        then<std::vector<std::string>>(std::move(handler),
                                       decode_all<Codec, ObjectOf<T>>("gather_obj")));
  }

  template <class Codec = DefaultCodec, class T>
  Call scatter_obj_async(const std::vector<T>& objects, Rank root, Duration timeout,
                         Handler<ObjectOf<T>> handler) {
    Result<std::vector<std::string>> encoded = std::vector<std::string>();
    if (root.number == self().rank()) encoded = ObjectCodec<Codec>::encode_all(objects);
    return begin_scatter<Codec, T>(std::move(encoded), root, timeout, std::move(handler));
  }
  template <class T, class Codec = DefaultCodec>
  Call scatter_obj_async(Rank root, Duration timeout, Handler<T> handler) {
    Result<std::vector<std::string>> nothing = std::vector<std::string>();
    if (root.number == self().rank()) nothing = root_needs("objects");
    return begin_scatter<Codec, T>(std::move(nothing), root, timeout, std::move(handler));
  }

  /// combine  called where handlers run; can be copied
  template <class Codec = DefaultCodec, class T, class Combine>
  Call all_reduce_obj_async(const T& object, Combine combine, Duration timeout,
                            Handler<ObjectOf<T>> handler) {
    auto bytes = ObjectCodec<Codec>::encode(object);
    if (!bytes) return refuse("all_reduce_obj", std::move(bytes).error(), std::move(handler));
    return self().all_gather_bytes_async(
        *bytes, ObjectCodec<Codec>::id(), timeout,
        then<std::vector<std::string>>(
            std::move(handler), [call = ObjectCall(self(), "all_reduce_obj"),
                                 combine](Result<std::vector<std::string>>&& all) mutable {
              return call.template reduced<Codec, ObjectOf<T>>(std::move(all), combine);
            }));
  }

 private:
  Group& self() { return static_cast<Group&>(*this); }

  template <class T>
  Call refuse(std::string_view operation, Error error, Handler<T> handler) {
    error.happened = Happened::no;
    return refused<T>(self(), ObjectCall(self(), operation).about(std::move(error)),
                      std::move(handler));
  }

  /// The handler of a call on bytes whose result `finish` turns into that of `handler`.
  template <class Raw, class T, class Finish>
  static Handler<Raw> then(Handler<T> handler, Finish finish) {
    return [handler = std::move(handler), finish = std::move(finish)](Result<Raw> raw) mutable {
      Result<T> result = finish(std::move(raw));
      if (handler) handler(std::move(result));
    };
  }

  template <class Codec, class T>
  auto decode_one(std::string_view operation, Rank root) {
    return
        [call = ObjectCall(self(), operation, Happened::maybe, root)](Result<std::string>&& one) {
          return call.template decode_one<Codec, T>(std::move(one));
        };
  }
  template <class Codec, class T>
  auto decode_all(std::string_view operation) {
    return [call = ObjectCall(self(), operation)](Result<std::vector<std::string>>&& all) {
      return call.template decode_all<Codec, T>(std::move(all));
    };
  }

  template <class Codec, class T>
  Call begin_broadcast(Result<std::string> bytes, Rank root, Duration timeout, Handler<T> handler) {
    if (!bytes) return refuse("broadcast_obj", std::move(bytes).error(), std::move(handler));
    return self().broadcast_bytes_async(
        *bytes, ObjectCodec<Codec>::id(), root, timeout,
        then<std::string>(std::move(handler), decode_one<Codec, T>("broadcast_obj", root)));
  }
  template <class Codec, class T>
  Call begin_scatter(Result<std::vector<std::string>> encoded, Rank root, Duration timeout,
                     Handler<T> handler) {
    if (!encoded) return refuse("scatter_obj", std::move(encoded).error(), std::move(handler));
    return self().scatter_bytes_async(
        *encoded, ObjectCodec<Codec>::id(), root, timeout,
        then<std::string>(std::move(handler), decode_one<Codec, T>("scatter_obj", root)));
  }
};

}  // namespace detail

MUSTER_END_NAMESPACE
