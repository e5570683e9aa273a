#pragma once

#include <type_traits>
#include <vector>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/object_calls.h"
#include "muster/process_group_options.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// What is easily written in place of calls on objects, and does not compile: each says what to
/// write.
class MisplacedCalls {
 public:
  template <class Codec = DefaultCodec, class Peer, class T, class... Rest,
            std::enable_if_t<is_misplaced<Peer, Rest...>, int> = 0>
  Result<void> send_obj(const Peer&, const T&, const Rest&...) {
    static_assert(is_never<Peer>,
                  "write send_obj(Rank{1}, object, Tag{7}, timeout): the destination comes first");
    return {};
  }
  template <class T, class Codec = DefaultCodec, class Peer, class... Rest,
            std::enable_if_t<is_misplaced<Peer, Rest...>, int> = 0>
  Result<T> recv_obj(const Peer&, const Rest&...) {
    static_assert(
        is_never<Peer>,
        "write recv_obj<T>(Rank{0}, Tag{7}, timeout): a timeout is a duration, as in 30s");
    return Error();
  }
  template <class T, class Codec = DefaultCodec, class Peer, class... Rest,
            std::enable_if_t<is_misplaced<Peer, Rest...>, int> = 0>
  Result<Received<T>> recv_numbered_obj(const Peer&, const Rest&...) {
    static_assert(is_never<Peer>,
                  "write recv_numbered_obj<T>(Rank{0}, Tag{7}, timeout): "
                  "a timeout is a duration, as in 30s");
    return Error();
  }
  template <class Codec = DefaultCodec, class T, class Root, class... Rest,
            std::enable_if_t<std::is_arithmetic_v<Root>, int> = 0>
  Result<ObjectOf<T>> broadcast_obj(const T&, const Root&, const Rest&...) {
    static_assert(is_never<T>, "write broadcast_obj(object, Rank{0}, timeout)");
    return Error();
  }
  template <class Codec = DefaultCodec, class T, class Root, class... Rest,
            std::enable_if_t<std::is_arithmetic_v<Root>, int> = 0>
  Result<std::vector<ObjectOf<T>>> gather_obj(const T&, const Root&, const Rest&...) {
    static_assert(is_never<T>, "write gather_obj(object, Rank{0}, timeout)");
    return Error();
  }
  template <class Codec = DefaultCodec, class T, class Root, class... Rest,
            std::enable_if_t<std::is_arithmetic_v<Root>, int> = 0>
  Result<T> scatter_obj(const std::vector<T>&, const Root&, const Rest&...) {
    static_assert(is_never<T>, "write scatter_obj(objects, Rank{0}, timeout)");
    return Error();
  }
};

}  // namespace detail

MUSTER_END_NAMESPACE
