#pragma once

#include <memory>
#include <string_view>

#include "client/call.h"
#include "client/checks.h"
#include "client/store_impl.h"

// How the calls of a Store run: a call that store_calls.h made, checked, in either form.

namespace muster::client {

template <class T>
Call<T> checked(Call<T> call, const Link& link, Duration timeout) {
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
Result<T> run(const std::shared_ptr<Store::Impl>& impl, Duration timeout, Call<T> call) {
  if (!impl) return moved_from(call.subject.operation);
  const std::shared_ptr<Link> link = impl->link();
  return block_on<T>(link, call.subject.operation,
                     [&] { return checked(std::move(call), *link, timeout); });
}

template <class T>
void run(const std::shared_ptr<Store::Impl>& impl, Duration timeout, Call<T> call,
         Handler<T> handler) {
  if (!impl) {
    if (handler) handler(moved_from(call.subject.operation));
    return;
  }
  const std::shared_ptr<Link> link = impl->link();
  start<T>(link, call.subject.operation, std::move(handler),
           [&] { return checked(std::move(call), *link, timeout); });
}

}  // namespace muster::client
