#pragma once

// The calls of a group for Asio, on bytes and on objects; muster/asio.h says what they promise.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/asio_call.h"
#include "muster/process_group.h"
#include "muster/store.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// Begins a call that sends `bytes`, by `call(group, bytes, handler)`, or ends with the codec's
/// error; what is gathered goes through `finish`.
template <class Raw, class Bytes, class Token, class Begin, class Finish>
auto asio_object_call(StatelessProcessGroup& group, std::string_view operation, Result<Bytes> bytes,
                      Token&& token, Begin call, Finish finish) {
  if (!bytes) {
    bytes.error().happened = Happened::no;
    bytes.error() = ObjectCall(group, operation).about(std::move(bytes).error());
  }
  return asio_start<Raw>(
      [&group, bytes = std::move(bytes), call](Handler<Raw> handler) -> Call {
        if (!bytes) return refused<Raw>(group, bytes.error(), std::move(handler));
        return call(group, *bytes, std::move(handler));
      },
      std::forward<Token>(token), std::move(finish));
}

}  // namespace detail

template <class Token>
auto async_create(const Store& store, std::string name, int rank, int world_size,
                  GroupOptions options, Token&& token) {
  return detail::asio_call<StatelessProcessGroup>(
      &StatelessProcessGroup::create_async, std::forward<Token>(token), std::cref(store),
      std::move(name), rank, world_size, std::move(options));
}

template <class Token>
auto async_barrier(StatelessProcessGroup& group, Duration timeout, Token&& token) {
  return detail::asio_call<BarrierResult>(&StatelessProcessGroup::barrier_async,
                                          std::forward<Token>(token), &group, timeout);
}

template <class Token>
auto async_interrupt(StatelessProcessGroup& group, std::string reason, Duration timeout,
                     Token&& token) {
  return detail::asio_call<void>(&StatelessProcessGroup::interrupt_async,
                                 std::forward<Token>(token), &group, std::move(reason), timeout);
}

template <class Token>
auto async_members(StatelessProcessGroup& group, Duration timeout, Token&& token) {
  return detail::asio_call<std::vector<MemberInfo>>(&StatelessProcessGroup::members_async,
                                                    std::forward<Token>(token), &group, timeout);
}

template <class Token>
auto async_expire_data(StatelessProcessGroup& group, std::optional<Duration> older_than,
                       Duration timeout, Token&& token) {
  return detail::asio_call<std::uint64_t>(&StatelessProcessGroup::expire_data_async,
                                          std::forward<Token>(token), &group, older_than, timeout);
}

template <class Token>
auto async_regroup(StatelessProcessGroup& group, RegroupOptions options, Duration timeout,
                   Token&& token) {
  return detail::asio_call<StatelessProcessGroup>(
      &StatelessProcessGroup::regroup_async, std::forward<Token>(token), &group, options, timeout);
}

template <class Token>
auto async_leave(StatelessProcessGroup& group, Duration timeout, Token&& token) {
  return detail::asio_call<void>(&StatelessProcessGroup::leave_async, std::forward<Token>(token),
                                 &group, timeout);
}

template <class Token>
auto async_recover(StatelessProcessGroup& group, Duration timeout, Token&& token) {
  return detail::asio_call<RecoveredRound>(&StatelessProcessGroup::recover_async,
                                           std::forward<Token>(token), &group, timeout);
}

// Bytes that a codec has made.

template <class Token>
auto async_send_bytes(StatelessProcessGroup& group, Rank destination, std::uint32_t codec,
                      std::string bytes, Tag tag, Duration timeout, Token&& token) {
  return detail::asio_call<void>(&StatelessProcessGroup::send_bytes_async,
                                 std::forward<Token>(token), &group, destination, codec,
                                 std::move(bytes), tag, timeout);
}

template <class Token>
auto async_recv_bytes(StatelessProcessGroup& group, Rank source, std::uint32_t codec, Tag tag,
                      Duration timeout, Token&& token) {
  return detail::asio_call<ReceivedBytes>(&StatelessProcessGroup::recv_bytes_async,
                                          std::forward<Token>(token), &group, source, codec, tag,
                                          timeout);
}

template <class Token>
auto async_broadcast_bytes(StatelessProcessGroup& group, std::string bytes, std::uint32_t codec,
                           Rank root, Duration timeout, Token&& token) {
  return detail::asio_call<std::string>(&StatelessProcessGroup::broadcast_bytes_async,
                                        std::forward<Token>(token), &group, std::move(bytes), codec,
                                        root, timeout);
}

template <class Token>
auto async_all_gather_bytes(StatelessProcessGroup& group, std::string bytes, std::uint32_t codec,
                            Duration timeout, Token&& token) {
  return detail::asio_call<std::vector<std::string>>(&StatelessProcessGroup::all_gather_bytes_async,
                                                     std::forward<Token>(token), &group,
                                                     std::move(bytes), codec, timeout);
}

template <class Token>
auto async_gather_bytes(StatelessProcessGroup& group, std::string bytes, std::uint32_t codec,
                        Rank root, Duration timeout, Token&& token) {
  return detail::asio_call<std::vector<std::string>>(&StatelessProcessGroup::gather_bytes_async,
                                                     std::forward<Token>(token), &group,
                                                     std::move(bytes), codec, root, timeout);
}

template <class Token>
auto async_scatter_bytes(StatelessProcessGroup& group, std::vector<std::string> bytes,
                         std::uint32_t codec, Rank root, Duration timeout, Token&& token) {
  return detail::asio_call<std::string>(&StatelessProcessGroup::scatter_bytes_async,
                                        std::forward<Token>(token), &group, std::move(bytes), codec,
                                        root, timeout);
}

// Objects. They are encoded before the function returns, and decoded where the handler runs.

template <class Codec = DefaultCodec, class T, class Token>
auto async_send_obj(StatelessProcessGroup& group, Rank destination, const T& object, Tag tag,
                    Duration timeout, Token&& token) {
  return detail::asio_object_call<void>(
      group, "send_obj", detail::ObjectCodec<Codec>::encode(object), std::forward<Token>(token),
      [destination, tag, timeout](auto& to, const std::string& bytes, Handler<void> handler) {
        return to.send_bytes_async(destination, detail::ObjectCodec<Codec>::id(), bytes, tag,
                                   timeout, std::move(handler));
      },
      detail::AsIs());
}

template <class T, class Codec = DefaultCodec, class Token>
auto async_recv_numbered_obj(StatelessProcessGroup& group, Rank source, Tag tag, Duration timeout,
                             Token&& token) {
  return detail::asio_start<Delivery>(
      [&group, source, tag, timeout](Handler<Delivery> handler) {
        return group.recv_delivery_async(source, detail::ObjectCodec<Codec>::id(), tag, timeout,
                                         std::move(handler));
      },
      std::forward<Token>(token),
      [call =
           detail::ObjectCall(group, "recv_obj", Happened::unsaid)](Result<Delivery>&& delivery) {
        return call.template received<Codec, T>(std::move(delivery));
      });
}

template <class T, class Codec = DefaultCodec, class Token>
auto async_recv_obj(StatelessProcessGroup& group, Rank source, Tag tag, Duration timeout,
                    Token&& token) {
  return detail::asio_start<Delivery>(
      [&group, source, tag, timeout](Handler<Delivery> handler) {
        return group.recv_delivery_async(source, detail::ObjectCodec<Codec>::id(), tag, timeout,
                                         std::move(handler));
      },
      std::forward<Token>(token),
      [call = detail::ObjectCall(group, "recv_obj", Happened::unsaid)](
          Result<Delivery>&& delivery) -> Result<T> {
        auto received = call.template received<Codec, T>(std::move(delivery));
        if (!received) return std::move(received).error();
        return std::move(received->object);
      });
}

template <class Codec = DefaultCodec, class T, class Token>
auto async_broadcast_obj(StatelessProcessGroup& group, const T& object, Rank root, Duration timeout,
                         Token&& token) {
  Result<std::string> bytes = std::string();
  if (root.number == group.rank()) bytes = detail::ObjectCodec<Codec>::encode(object);
  return detail::asio_object_call<std::string>(
      group, "broadcast_obj", std::move(bytes), std::forward<Token>(token),
      [root, timeout](auto& to, const std::string& encoded, Handler<std::string> handler) {
        return to.broadcast_bytes_async(encoded, detail::ObjectCodec<Codec>::id(), root, timeout,
                                        std::move(handler));
      },
      [call = detail::ObjectCall(group, "broadcast_obj", Happened::maybe, root)](
          Result<std::string>&& one) {
        return call.template decode_one<Codec, ObjectOf<T>>(std::move(one));
      });
}

/// At other ranks than the root.
template <class T, class Codec = DefaultCodec, class Token>
auto async_broadcast_obj(StatelessProcessGroup& group, Rank root, Duration timeout, Token&& token) {
  Result<std::string> nothing = std::string();
  if (root.number == group.rank()) nothing = detail::root_needs("an object");
  return detail::asio_object_call<std::string>(
      group, "broadcast_obj", std::move(nothing), std::forward<Token>(token),
      [root, timeout](auto& to, const std::string& bytes, Handler<std::string> handler) {
        return to.broadcast_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), root, timeout,
                                        std::move(handler));
      },
      [call = detail::ObjectCall(group, "broadcast_obj", Happened::maybe, root)](
          Result<std::string>&& one) {
        return call.template decode_one<Codec, T>(std::move(one));
      });
}

template <class Codec = DefaultCodec, class T, class Token>
auto async_all_gather_obj(StatelessProcessGroup& group, const T& object, Duration timeout,
                          Token&& token) {
  return detail::asio_object_call<std::vector<std::string>>(
      group, "all_gather_obj", detail::ObjectCodec<Codec>::encode(object),
      std::forward<Token>(token),
      [timeout](auto& to, const std::string& bytes, Handler<std::vector<std::string>> handler) {
        return to.all_gather_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), timeout,
                                         std::move(handler));
      },
      [call = detail::ObjectCall(group, "all_gather_obj")](Result<std::vector<std::string>>&& all) {
        return call.template decode_all<Codec, ObjectOf<T>>(std::move(all));
      });
}

template <class Codec = DefaultCodec, class T, class Token>
auto async_gather_obj(StatelessProcessGroup& group, const T& object, Rank root, Duration timeout,
                      Token&& token) {
  return detail::asio_object_call<std::vector<std::string>>(
      group, "gather_obj", detail::ObjectCodec<Codec>::encode(object), std::forward<Token>(token),
      [root, timeout](auto& to, const std::string& bytes,
                      Handler<std::vector<std::string>> handler) {
        return to.gather_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), root, timeout,
                                     std::move(handler));
      },
      [call = detail::ObjectCall(group, "gather_obj")](Result<std::vector<std::string>>&& all) {
        return call.template decode_all<Codec, ObjectOf<T>>(std::move(all));
      });
}

template <class Codec = DefaultCodec, class T, class Token>
auto async_scatter_obj(StatelessProcessGroup& group, const std::vector<T>& objects, Rank root,
                       Duration timeout, Token&& token) {
  Result<std::vector<std::string>> encoded = std::vector<std::string>();
  if (root.number == group.rank()) encoded = detail::ObjectCodec<Codec>::encode_all(objects);
  return detail::asio_object_call<std::string>(
      group, "scatter_obj", std::move(encoded), std::forward<Token>(token),
      [root, timeout](auto& to, const std::vector<std::string>& bytes,
                      Handler<std::string> handler) {
        return to.scatter_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), root, timeout,
                                      std::move(handler));
      },
      [call = detail::ObjectCall(group, "scatter_obj", Happened::maybe, root)](
          Result<std::string>&& one) {
        return call.template decode_one<Codec, T>(std::move(one));
      });
}

/// At other ranks than the root.
template <class T, class Codec = DefaultCodec, class Token>
auto async_scatter_obj(StatelessProcessGroup& group, Rank root, Duration timeout, Token&& token) {
  Result<std::vector<std::string>> nothing = std::vector<std::string>();
  if (root.number == group.rank()) nothing = detail::root_needs("objects");
  return detail::asio_object_call<std::string>(
      group, "scatter_obj", std::move(nothing), std::forward<Token>(token),
      [root, timeout](auto& to, const std::vector<std::string>& bytes,
                      Handler<std::string> handler) {
        return to.scatter_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), root, timeout,
                                      std::move(handler));
      },
      [call = detail::ObjectCall(group, "scatter_obj", Happened::maybe, root)](
          Result<std::string>&& one) {
        return call.template decode_one<Codec, T>(std::move(one));
      });
}

/// combine  called where the handler runs
template <class Codec = DefaultCodec, class T, class Combine, class Token>
auto async_all_reduce_obj(StatelessProcessGroup& group, const T& object, Combine combine,
                          Duration timeout, Token&& token) {
  return detail::asio_object_call<std::vector<std::string>>(
      group, "all_reduce_obj", detail::ObjectCodec<Codec>::encode(object),
      std::forward<Token>(token),
      [timeout](auto& to, const std::string& bytes, Handler<std::vector<std::string>> handler) {
        return to.all_gather_bytes_async(bytes, detail::ObjectCodec<Codec>::id(), timeout,
                                         std::move(handler));
      },
      [call = detail::ObjectCall(group, "all_reduce_obj"),
       combine = std::move(combine)](Result<std::vector<std::string>>&& all) mutable {
        return call.template reduced<Codec, ObjectOf<T>>(std::move(all), combine);
      });
}

MUSTER_END_NAMESPACE
