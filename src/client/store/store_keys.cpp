#include "client/store/store_call.h"
#include "muster/store.h"

// The calls on several keys, and the list of keys; as in store_key.cpp.

namespace muster::client {
namespace {

std::vector<std::string_view> listed(Keys keys) { return {keys.begin(), keys.end()}; }

PreparedCall<Values> multi_get_call(Keys keys) {
  return call<Values>(wire::MultiGet{listed(keys)},
                      [](const wire::ValuesReply& reply, const auto&) {
                        return Values(reply.values.begin(), reply.values.end());
                      });
}

PreparedCall<void> multi_set_call(Entries entries, std::optional<Duration> ttl) {
  wire::MultiSet body;
  body.entries.reserve(entries.size());
  for (const auto& [key, value] : entries) body.entries.push_back({key, value});
  body.ttl = ttl;
  return call<void>(std::move(body), read_nothing);
}

PreparedCall<std::uint64_t> multi_remove_call(Keys keys) {
  return call<std::uint64_t>(wire::Remove{listed(keys)}, read_count, "multi_remove");
}

PreparedCall<std::vector<bool>> multi_exists_call(Keys keys) {
  return call<std::vector<bool>>(
      wire::Exists{listed(keys)},
      [](wire::PresenceReply& reply, const auto&) { return std::move(reply.present); },
      "multi_exists");
}

PreparedCall<void> wait_call(Keys keys) {
  return call<void>(wire::Wait{listed(keys)}, read_nothing);
}

}  // namespace

PreparedCall<KeyPage> list_call(wire::ListKind kind, std::string_view prefix,
                                std::uint64_t cursor) {
  return call<KeyPage>(
      wire::List{kind, prefix, cursor, 0}, [](const wire::ListReply& reply, const auto&) {
        KeyPage page;
        page.keys.reserve(reply.entries.size());
        for (const wire::ListEntry& entry : reply.entries) {
          page.keys.push_back({std::string(entry.name), entry.value_bytes, entry.ttl, entry.bound});
        }
        page.cursor = reply.cursor;
        return page;
      });
}

}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

using client::run;

Result<std::vector<std::optional<std::string>>> Store::multi_get(const Keys& keys,
                                                                 Duration timeout) {
  return run(impl_, timeout, client::multi_get_call(keys));
}

Call Store::multi_get_async(const Keys& keys, Duration timeout,
                            Handler<std::vector<std::optional<std::string>>> handler) {
  return run(impl_, timeout, client::multi_get_call(keys), std::move(handler));
}

Result<void> Store::multi_set(const KeyValues& entries, WriteOptions options, Duration timeout) {
  return run(impl_, timeout, client::multi_set_call(entries, options.ttl));
}

Call Store::multi_set_async(const KeyValues& entries, WriteOptions options, Duration timeout,
                            Handler<void> handler) {
  return run(impl_, timeout, client::multi_set_call(entries, options.ttl), std::move(handler));
}

Result<std::uint64_t> Store::multi_remove(const Keys& keys, Duration timeout) {
  return run(impl_, timeout, client::multi_remove_call(keys));
}

Call Store::multi_remove_async(const Keys& keys, Duration timeout, Handler<std::uint64_t> handler) {
  return run(impl_, timeout, client::multi_remove_call(keys), std::move(handler));
}

Result<std::vector<bool>> Store::multi_exists(const Keys& keys, Duration timeout) {
  return run(impl_, timeout, client::multi_exists_call(keys));
}

Call Store::multi_exists_async(const Keys& keys, Duration timeout,
                               Handler<std::vector<bool>> handler) {
  return run(impl_, timeout, client::multi_exists_call(keys), std::move(handler));
}

Result<void> Store::wait(const Keys& keys, Duration timeout) {
  return run(impl_, timeout, client::wait_call(keys));
}

Call Store::wait_async(const Keys& keys, Duration timeout, Handler<void> handler) {
  return run(impl_, timeout, client::wait_call(keys), std::move(handler));
}

Result<KeyPage> Store::list(std::string_view prefix, std::uint64_t cursor, Duration timeout) {
  return run(impl_, timeout, client::list_call(wire::ListKind::keys, prefix, cursor));
}

Call Store::list_async(std::string_view prefix, std::uint64_t cursor, Duration timeout,
                       Handler<KeyPage> handler) {
  return run(impl_, timeout, client::list_call(wire::ListKind::keys, prefix, cursor),
             std::move(handler));
}

MUSTER_END_NAMESPACE
