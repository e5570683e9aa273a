#include "client/store_call.h"
#include "client/store_calls.h"
#include "muster/store.h"

// The blocking forms of the calls on keys.

MUSTER_BEGIN_NAMESPACE

using client::run;

Result<bool> Store::set(std::string_view key, std::string_view value, const SetOptions& options,
                        Duration timeout) {
  return run(impl_, timeout, client::set_call(key, value, options));
}

Result<std::string> Store::get(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::get_call(key));
}

Result<std::string> Store::take(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::take_call(key));
}

Result<std::int64_t> Store::add(std::string_view key, std::int64_t delta, Duration timeout) {
  return run(impl_, timeout, client::add_call(key, delta));
}

Result<Compared> Store::compare_set(std::string_view key, std::optional<std::string_view> expected,
                                    std::string_view desired, WriteOptions options,
                                    Duration timeout) {
  return run(impl_, timeout, client::compare_set_call(key, expected, desired, options.ttl));
}

Result<std::uint64_t> Store::append(std::string_view key, std::string_view suffix,
                                    Duration timeout) {
  return run(impl_, timeout, client::append_call(key, suffix));
}

Result<void> Store::touch(std::string_view key, std::optional<Duration> ttl, Duration timeout) {
  return run(impl_, timeout, client::touch_call(key, ttl));
}

Result<bool> Store::remove(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::remove_call(key));
}

Result<bool> Store::exists(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::exists_call(key));
}

Result<std::uint64_t> Store::multi_remove(Span<const std::string_view> keys, Duration timeout) {
  return run(impl_, timeout, client::multi_remove_call(keys));
}

Result<std::vector<bool>> Store::multi_exists(Span<const std::string_view> keys, Duration timeout) {
  return run(impl_, timeout, client::multi_exists_call(keys));
}

Result<void> Store::wait(Span<const std::string_view> keys, Duration timeout) {
  return run(impl_, timeout, client::wait_call(keys));
}

Result<std::vector<std::optional<std::string>>> Store::multi_get(Span<const std::string_view> keys,
                                                                 Duration timeout) {
  return run(impl_, timeout, client::multi_get_call(keys));
}

Result<void> Store::multi_set(Span<const std::pair<std::string_view, std::string_view>> entries,
                              WriteOptions options, Duration timeout) {
  return run(impl_, timeout, client::multi_set_call(entries, options.ttl));
}

Result<KeyPage> Store::list(std::string_view prefix, std::uint64_t cursor, Duration timeout) {
  return run(impl_, timeout, client::list_call(wire::ListKind::keys, prefix, cursor));
}

Result<void> Store::report_dead(const ProcessId& process, std::string_view reason,
                                Duration timeout) {
  return run(impl_, timeout, client::report_dead_call(process, reason));
}

Result<std::vector<std::pair<std::string, std::string>>> Store::status(Duration timeout) {
  return run(impl_, timeout, client::status_call());
}

MUSTER_END_NAMESPACE
