#pragma once

// The future form of any call in its callback form:
//
//     auto next = muster::future_of<Order>([&](muster::Handler<Order> handler) {
//       return group.recv_obj_async<Order>(muster::Rank{0}, muster::Tag{}, 5s, std::move(handler));
//     });
//     ...
//     muster::Result<Order> order = next.get();

#include <future>
#include <memory>
#include <utility>

#include "muster/config.h"
#include "muster/result.h"
#include "muster/store_options.h"

MUSTER_BEGIN_NAMESPACE

/// Begins a call, and returns the future of its result. It ends as every call does: with its
/// deadline at the latest. A handler must not wait for a future: on the thread that runs handlers,
/// or that does the input and output, it would never come.
///
/// begin  gives the handler to a call in its callback form
template <class T, class Begin>
std::future<Result<T>> future_of(Begin begin) {
  const auto promise = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> future = promise->get_future();
  begin(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  return future;
}

MUSTER_END_NAMESPACE
