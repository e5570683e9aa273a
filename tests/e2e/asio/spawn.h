#pragma once

#include <exception>
#include <utility>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#if __has_include(<asio/deferred.hpp>)
#include <asio/deferred.hpp>
#else
#include <asio/experimental/deferred.hpp>
#endif

#include "muster/asio.h"
#include "support/ranks.h"

namespace muster::test {

#if __has_include(<asio/deferred.hpp>)
using asio::deferred;
#else
using asio::experimental::deferred;
#endif
using asio::awaitable;
using asio::use_awaitable;

/// Lets what a coroutine throws, such as a failed requirement, out of the context's `run`.
inline void rethrow(std::exception_ptr thrown) {
  if (thrown) std::rethrow_exception(thrown);
}

/// An io_context with Muster in it. Its stores and servers go before it.
struct AsioHost {
  AsioLoop loop_of(asio::io_context& of) { return must(AsioLoop::create(of.get_executor())); }

  /// Runs until `work` has ended; by then it has let go of what it made.
  void run(awaitable<void> work) {
    asio::co_spawn(context, std::move(work), [this](std::exception_ptr thrown) {
      loop.stop();
      rethrow(std::move(thrown));
    });
    context.run();
  }

  Server start_server() {
    ServerOptions options;
    options.io_thread = loop.io_thread();
    return test::start_server(std::move(options));
  }

  StoreOptions store_options() const {
    StoreOptions options;
    options.io_thread = loop.io_thread();
    return options;
  }

  awaitable<Store> connect(const Server& server) {
    co_return must(
        co_await async_connect(server.addresses().front(), store_options(), 20s, use_awaitable));
  }

  asio::io_context context;
  AsioLoop loop{loop_of(context)};
};

}  // namespace muster::test
