#include "client/store_call.h"
#include "client/store_calls.h"
#include "muster/store.h"

// The callback forms of the calls on keys.

MUSTER_BEGIN_NAMESPACE

using client::run;

void Store::set_async(std::string_view key, std::string_view value, const SetOptions& options,
                      Duration timeout, Handler<bool> handler) {
  run(impl_, timeout, client::set_call(key, value, options), std::move(handler));
}

void Store::get_async(std::string_view key, Duration timeout, Handler<std::string> handler) {
  run(impl_, timeout, client::get_call(key), std::move(handler));
}

void Store::take_async(std::string_view key, Duration timeout, Handler<std::string> handler) {
  run(impl_, timeout, client::take_call(key), std::move(handler));
}

void Store::add_async(std::string_view key, std::int64_t delta, Duration timeout,
                      Handler<std::int64_t> handler) {
  run(impl_, timeout, client::add_call(key, delta), std::move(handler));
}

void Store::compare_set_async(std::string_view key, std::optional<std::string_view> expected,
                              std::string_view desired, WriteOptions options, Duration timeout,
                              Handler<Compared> handler) {
  run(impl_, timeout, client::compare_set_call(key, expected, desired, options.ttl),
      std::move(handler));
}

void Store::append_async(std::string_view key, std::string_view suffix, Duration timeout,
                         Handler<std::uint64_t> handler) {
  run(impl_, timeout, client::append_call(key, suffix), std::move(handler));
}

void Store::touch_async(std::string_view key, std::optional<Duration> ttl, Duration timeout,
                        Handler<void> handler) {
  run(impl_, timeout, client::touch_call(key, ttl), std::move(handler));
}

void Store::remove_async(std::string_view key, Duration timeout, Handler<bool> handler) {
  run(impl_, timeout, client::remove_call(key), std::move(handler));
}

void Store::exists_async(std::string_view key, Duration timeout, Handler<bool> handler) {
  run(impl_, timeout, client::exists_call(key), std::move(handler));
}

void Store::multi_remove_async(Span<const std::string_view> keys, Duration timeout,
                               Handler<std::uint64_t> handler) {
  run(impl_, timeout, client::multi_remove_call(keys), std::move(handler));
}

void Store::multi_exists_async(Span<const std::string_view> keys, Duration timeout,
                               Handler<std::vector<bool>> handler) {
  run(impl_, timeout, client::multi_exists_call(keys), std::move(handler));
}

void Store::wait_async(Span<const std::string_view> keys, Duration timeout, Handler<void> handler) {
  run(impl_, timeout, client::wait_call(keys), std::move(handler));
}

void Store::multi_get_async(Span<const std::string_view> keys, Duration timeout,
                            Handler<std::vector<std::optional<std::string>>> handler) {
  run(impl_, timeout, client::multi_get_call(keys), std::move(handler));
}

void Store::multi_set_async(Span<const std::pair<std::string_view, std::string_view>> entries,
                            WriteOptions options, Duration timeout, Handler<void> handler) {
  run(impl_, timeout, client::multi_set_call(entries, options.ttl), std::move(handler));
}

void Store::list_async(std::string_view prefix, std::uint64_t cursor, Duration timeout,
                       Handler<KeyPage> handler) {
  run(impl_, timeout, client::list_call(wire::ListKind::keys, prefix, cursor), std::move(handler));
}

void Store::report_dead_async(const ProcessId& process, std::string_view reason, Duration timeout,
                              Handler<void> handler) {
  run(impl_, timeout, client::report_dead_call(process, reason), std::move(handler));
}

void Store::status_async(Duration timeout,
                         Handler<std::vector<std::pair<std::string, std::string>>> handler) {
  run(impl_, timeout, client::status_call(), std::move(handler));
}

MUSTER_END_NAMESPACE
