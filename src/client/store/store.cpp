#include "muster/store.h"

#include <new>

#include "base/forked.h"
#include "base/monotonic_now.h"
#include "base/secret/unshown.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/store/store_impl.h"
#include "net/io_thread.h"

// The session's life. The calls are in store_key.cpp, store_keys.cpp and store_server.cpp.

MUSTER_BEGIN_NAMESPACE

using client::Link;

namespace {

constexpr std::string_view connect_name = "connect";
constexpr std::string_view reopen_name = "reopen";

struct Opening {
  std::shared_ptr<Link> link;
  Duration timeout{0};
};

Result<Opening> opening(std::string_view address, StoreOptions options, Duration timeout) {
  auto resolved = client::timeout_or(timeout, options.timeout);
  if (!resolved) return std::move(resolved).error();
  if (options.io_thread && options.io_thread->impl().forked()) {
    return client::failure(
        ErrorCode::forked,
        "the I/O thread belongs to the parent process; make another one in the child");
  }
  auto link = Link::create(address, std::move(options));
  if (!link) return std::move(link).error();
  return Opening{*std::move(link), *resolved};
}

/// There is no link yet to run the handler on: it keeps the I/O thread until it has run.
void refuse(const StoreOptions& options, Handler<Store> handler, Error error) {
  auto io_thread = options.io_thread ? options.io_thread : IoThread::create();
  if (!io_thread || io_thread->impl().forked()) return handler(std::move(error));
  client::Handlers(options, *io_thread)
      .dispatch_later(connect_name,
                      [io_thread, handler = std::move(handler), error] { handler(error); });
}

}  // namespace

std::shared_ptr<Store::Impl> Store::Impl::create(std::shared_ptr<Link> link) {
  return std::shared_ptr<Impl>(new Impl(std::move(link)), [](Impl* impl) {
    if (!impl->link()->is_forked()) {
      impl->link()->close();
      delete impl;
      return;
    }
    // Destroying the rest would disturb the parent's epoll set, which the child shares, and may
    // wait for locks of threads that the child does not have.
    impl->link()->close_inherited();
    base::keep_forever(std::shared_ptr<Link>(impl->link()));
  });
}

Result<Store> Store::connect(std::string_view address, StoreOptions options, Duration timeout) {
  const auto begun = base::monotonic_now();
  const auto failed = [&](Error error, const Link* link) {
    error.where = base::shown_unless_secret(base::without_line_end(address));
    return client::described(std::move(error), {connect_name, {}, 0, 0}, link, begun);
  };
  try {
    auto ready = opening(address, std::move(options), timeout);
    if (!ready) return failed(std::move(ready).error(), nullptr);
    auto impl = Impl::create(ready->link);  // closes when this fails
    if (auto refused = client::refusal_to_begin(*ready->link, client::Form::blocking)) {
      return failed(*std::move(refused), ready->link.get());
    }
    auto established = client::establish_and_wait(*ready->link, ready->timeout);
    if (!established) return failed(std::move(established).error(), ready->link.get());
    return Store(std::move(impl));
  } catch (const std::bad_alloc&) {
    return failed(client::out_of_memory(), nullptr);
  }
}

Call Store::connect_async(std::string_view address, StoreOptions options, Duration timeout,
                          Handler<Store> handler) {
  const auto begun = base::monotonic_now();
  auto ready = opening(address, options, timeout);
  if (!ready) {
    Error error =
        client::described(std::move(ready).error(), {connect_name, {}, 0, 0}, nullptr, begun);
    error.where = base::shown_unless_secret(base::without_line_end(address));
    if (handler) refuse(options, std::move(handler), std::move(error));
    return {};
  }
  auto started =
      std::make_unique<client::Started<Store>>(ready->link, connect_name, std::move(handler));
  started->call.context.operation = connect_name;
  started->call.decode = [impl = Impl::create(ready->link)](std::string&&) mutable {
    return Result<Store>(Store(std::move(impl)));
  };
  return client::establish(std::move(started), ready->timeout);
}

Store::Store(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Store Store::share() const { return Store(impl_); }

void Store::cancel() noexcept {
  if (impl_) impl_->link()->cancel();
}

void Store::close() {
  if (impl_) impl_->link()->close();
}

Result<void> Store::reopen(Duration timeout) {
  if (!impl_) return client::moved_from(reopen_name);
  Link& link = *impl_->link();
  const auto begun = base::monotonic_now();
  const auto attempt = [&]() -> Result<void> {
    if (auto refused = client::refusal_to_begin(link, client::Form::blocking)) return *refused;
    const auto resolved = client::timeout_or(timeout, link.options().timeout);
    if (!resolved) return resolved.error();
    try {
      return client::establish_and_wait(link, *resolved);
    } catch (const std::bad_alloc&) {
      return client::out_of_memory();
    }
  };
  auto result = attempt();
  if (result) return {};
  return client::described(std::move(result).error(), {reopen_name, {}, 0, 0}, &link, begun);
}

Call Store::reopen_async(Duration timeout, Handler<void> handler) {
  if (!handler) return {};
  if (!impl_) {
    handler(client::moved_from(reopen_name));
    return {};
  }
  const std::shared_ptr<Link> link = impl_->link();
  const client::ErrorContext context{reopen_name, {}, 0, 0};
  if (auto refused = client::refusal_to_begin(*link, client::Form::callback)) {
    handler(client::described(*std::move(refused), context, link.get(), base::monotonic_now()));
    return {};
  }
  auto started = std::make_unique<client::Started<void>>(link, reopen_name, std::move(handler));
  started->call.context = context;
  started->call.decode = [](std::string&&) { return Result<void>(); };
  const auto resolved = client::timeout_or(timeout, link->options().timeout);
  if (!resolved) {
    started->call.refused = resolved.error();
    client::run_handler_later(std::move(started));
    return {};
  }
  return client::establish(std::move(started), *resolved);
}

Limits Store::limits() const {
  if (!impl_ || impl_->link()->is_forked()) return {};
  return impl_->link()->limits();
}

const std::string& Store::address() const {
  static const std::string none;
  return impl_ ? impl_->link()->address() : none;
}

const ProcessInfo& Store::process() const {
  static const ProcessInfo none;
  return impl_ ? impl_->link()->process() : none;
}

std::uint64_t Store::incarnation() const {
  if (!impl_ || impl_->link()->is_forked()) return 0;
  return impl_->link()->incarnation();
}

MUSTER_END_NAMESPACE
