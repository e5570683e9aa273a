#include "client/store/store_call.h"
#include "muster/store.h"

// The calls on one key, but for takes and pops: what each asks, how it reads the answer, and its
// two forms.

namespace muster::client {
namespace {

constexpr auto read_applied = [](const wire::AppliedReply& reply, const auto&) {
  return reply.applied;
};
constexpr auto read_value = [](const wire::ValueReply& reply, std::string& body) {
  return cut_out(body, reply.value);
};
constexpr auto read_number = [](const wire::NumberReply& reply, const auto&) {
  return reply.number;
};

PreparedCall<bool> set_call(std::string_view key, std::string_view value,
                            const SetOptions& options) {
  return call<bool>(
      wire::Set{key, value, options.ttl, options.only_if_absent, options.bind_to_session},
      read_applied);
}

PreparedCall<std::string> get_call(std::string_view key) {
  return call<std::string>(wire::Get{key}, read_value);
}

PreparedCall<std::int64_t> add_call(std::string_view key, std::int64_t delta) {
  return call<std::int64_t>(wire::Add{key, delta}, read_number);
}

PreparedCall<Compared> compare_set_call(std::string_view key,
                                        std::optional<std::string_view> expected,
                                        std::string_view desired, std::optional<Duration> ttl) {
  return call<Compared>(wire::CompareSet{key, expected, desired, ttl},
                        [](const wire::AppliedReply& reply, std::string& body) {
                          Compared compared{reply.applied, std::nullopt};
                          if (reply.value) compared.current = cut_out(body, *reply.value);
                          return compared;
                        });
}

PreparedCall<std::uint64_t> append_call(std::string_view key, std::string_view suffix) {
  return call<std::uint64_t>(wire::Append{key, suffix}, read_count);
}

PreparedCall<void> touch_call(std::string_view key, std::optional<Duration> ttl) {
  return call<void>(wire::Touch{key, ttl}, read_nothing);
}

PreparedCall<bool> remove_call(std::string_view key) {
  return call<bool>(wire::Remove{{key}},
                    [](const wire::NumberReply& reply, const auto&) { return reply.number != 0; });
}

PreparedCall<bool> exists_call(std::string_view key) {
  return call<bool>(wire::Exists{{key}}, [](const wire::PresenceReply& reply, const auto&) {
    return !reply.present.empty() && reply.present.front();
  });
}

PreparedCall<std::uint64_t> queue_push_call(std::string_view key, std::string_view item) {
  return call<std::uint64_t>(wire::QueuePush{key, item}, read_count);
}

PreparedCall<std::uint64_t> queue_length_call(std::string_view key) {
  return call<std::uint64_t>(wire::QueueLength{key}, read_count);
}

}  // namespace
}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

using client::run;

Result<bool> Store::set(std::string_view key, std::string_view value, const SetOptions& options,
                        Duration timeout) {
  return run(impl_, timeout, client::set_call(key, value, options));
}

Call Store::set_async(std::string_view key, std::string_view value, const SetOptions& options,
                      Duration timeout, Handler<bool> handler) {
  return run(impl_, timeout, client::set_call(key, value, options), std::move(handler));
}

Result<std::string> Store::get(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::get_call(key));
}

Call Store::get_async(std::string_view key, Duration timeout, Handler<std::string> handler) {
  return run(impl_, timeout, client::get_call(key), std::move(handler));
}

Result<std::int64_t> Store::add(std::string_view key, std::int64_t delta, Duration timeout) {
  return run(impl_, timeout, client::add_call(key, delta));
}

Call Store::add_async(std::string_view key, std::int64_t delta, Duration timeout,
                      Handler<std::int64_t> handler) {
  return run(impl_, timeout, client::add_call(key, delta), std::move(handler));
}

Result<Compared> Store::compare_set(std::string_view key, std::optional<std::string_view> expected,
                                    std::string_view desired, WriteOptions options,
                                    Duration timeout) {
  return run(impl_, timeout, client::compare_set_call(key, expected, desired, options.ttl));
}

Call Store::compare_set_async(std::string_view key, std::optional<std::string_view> expected,
                              std::string_view desired, WriteOptions options, Duration timeout,
                              Handler<Compared> handler) {
  return run(impl_, timeout, client::compare_set_call(key, expected, desired, options.ttl),
             std::move(handler));
}

Result<std::uint64_t> Store::append(std::string_view key, std::string_view suffix,
                                    Duration timeout) {
  return run(impl_, timeout, client::append_call(key, suffix));
}

Call Store::append_async(std::string_view key, std::string_view suffix, Duration timeout,
                         Handler<std::uint64_t> handler) {
  return run(impl_, timeout, client::append_call(key, suffix), std::move(handler));
}

Result<void> Store::touch(std::string_view key, std::optional<Duration> ttl, Duration timeout) {
  return run(impl_, timeout, client::touch_call(key, ttl));
}

Call Store::touch_async(std::string_view key, std::optional<Duration> ttl, Duration timeout,
                        Handler<void> handler) {
  return run(impl_, timeout, client::touch_call(key, ttl), std::move(handler));
}

Result<bool> Store::remove(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::remove_call(key));
}

Call Store::remove_async(std::string_view key, Duration timeout, Handler<bool> handler) {
  return run(impl_, timeout, client::remove_call(key), std::move(handler));
}

Result<bool> Store::exists(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::exists_call(key));
}

Call Store::exists_async(std::string_view key, Duration timeout, Handler<bool> handler) {
  return run(impl_, timeout, client::exists_call(key), std::move(handler));
}

Result<std::uint64_t> Store::queue_push(std::string_view key, std::string_view item,
                                        Duration timeout) {
  return run(impl_, timeout, client::queue_push_call(key, item));
}

Call Store::queue_push_async(std::string_view key, std::string_view item, Duration timeout,
                             Handler<std::uint64_t> handler) {
  return run(impl_, timeout, client::queue_push_call(key, item), std::move(handler));
}

Result<std::uint64_t> Store::queue_length(std::string_view key, Duration timeout) {
  return run(impl_, timeout, client::queue_length_call(key));
}

Call Store::queue_length_async(std::string_view key, Duration timeout,
                               Handler<std::uint64_t> handler) {
  return run(impl_, timeout, client::queue_length_call(key), std::move(handler));
}

MUSTER_END_NAMESPACE
