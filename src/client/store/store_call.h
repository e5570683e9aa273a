#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/call.h"
#include "client/checks.h"
#include "client/decode.h"
#include "client/store/store_impl.h"
#include "muster/span.h"

// How the calls of a Store are made and run: what it asks, checked, in either form.

namespace muster::client {

using Keys = Span<const std::string_view>;
using Entries = Span<const std::pair<std::string_view, std::string_view>>;
using Values = std::vector<std::optional<std::string>>;
using Fields = std::vector<std::pair<std::string, std::string>>;

/// A call that asks `body`, which views its arguments. `read` is as for `decoder`; `name` is the
/// public call's.
template <class T, class Request, class Read>
PreparedCall<T> call(Request body, Read read,
                     std::string_view name = wire::name_of(wire::operation<Request>)) {
  PreparedCall<T> made;
  made.context.operation = name;
  made.body = std::move(body);
  made.decode = decoder<T, Request>(std::move(read));
  return made;
}

/// A page of keys, or of the objects of groups.
PreparedCall<KeyPage> list_call(wire::ListKind kind, std::string_view prefix, std::uint64_t cursor);

inline constexpr auto read_count = [](const wire::NumberReply& reply, const auto&) {
  return static_cast<std::uint64_t>(reply.number);
};

template <class T>
PreparedCall<T> checked(PreparedCall<T> call, const Link& link, Duration timeout) {
  auto resolved = timeout_or(timeout, link.options().timeout);
  if (resolved) {
    call.timeout = *resolved;
    call.refused = refusal_of(call.body, link.limits());
  } else {
    call.refused = std::move(resolved).error();
  }
  return call;
}

template <class T>
Result<T> run(const std::shared_ptr<Store::Impl>& impl, Duration timeout, PreparedCall<T> call) {
  if (!impl) return moved_from(call.context.operation);
  const std::shared_ptr<Link> link = impl->link();
  return block_on<T>(link, call.context.operation,
                     [&] { return checked(std::move(call), *link, timeout); });
}

template <class T>
Call run(const std::shared_ptr<Store::Impl>& impl, Duration timeout, PreparedCall<T> call,
         Handler<T> handler) {
  if (!impl) {
    if (handler) handler(moved_from(call.context.operation));
    return {};
  }
  const std::shared_ptr<Link> link = impl->link();
  return start<T>(link, call.context.operation, std::move(handler),
                  [&] { return checked(std::move(call), *link, timeout); });
}

}  // namespace muster::client
