#pragma once

// The calls of a store for Asio; muster/asio.h says what they promise.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/detail/asio_call.h"
#include "muster/keys.h"
#include "muster/store.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// Keys that an operation keeps until it begins.
class OwnedKeys {
 public:
  OwnedKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  operator Keys() const { return keys_; }

 private:
  std::vector<std::string> keys_;
};

/// The same with values.
class OwnedEntries {
 public:
  OwnedEntries(std::vector<std::pair<std::string, std::string>> entries)
      : entries_(std::move(entries)) {}

  operator KeyValues() const { return entries_; }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

}  // namespace detail

template <class Token>
auto async_connect(std::string address, StoreOptions options, Duration timeout, Token&& token) {
  return detail::asio_call<Store>(&Store::connect_async, std::forward<Token>(token),
                                  std::move(address), std::move(options), timeout);
}

template <class Token>
auto async_set(Store& store, std::string key, std::string value, const SetOptions& options,
               Duration timeout, Token&& token) {
  return detail::asio_call<bool>(&Store::set_async, std::forward<Token>(token), &store,
                                 std::move(key), std::move(value), options, timeout);
}

template <class Token>
auto async_get(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<std::string>(&Store::get_async, std::forward<Token>(token), &store,
                                        std::move(key), timeout);
}

template <class Token>
auto async_take(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<detail::TakenValue>(&detail::take_async, std::forward<Token>(token),
                                               &store, std::move(key), timeout);
}

template <class Token>
auto async_add(Store& store, std::string key, std::int64_t delta, Duration timeout, Token&& token) {
  return detail::asio_call<std::int64_t>(&Store::add_async, std::forward<Token>(token), &store,
                                         std::move(key), delta, timeout);
}

template <class Token>
auto async_compare_set(Store& store, std::string key, std::optional<std::string> expected,
                       std::string desired, WriteOptions options, Duration timeout, Token&& token) {
  return detail::asio_call<Compared>(&Store::compare_set_async, std::forward<Token>(token), &store,
                                     std::move(key), std::move(expected), std::move(desired),
                                     options, timeout);
}

template <class Token>
auto async_append(Store& store, std::string key, std::string suffix, Duration timeout,
                  Token&& token) {
  return detail::asio_call<std::uint64_t>(&Store::append_async, std::forward<Token>(token), &store,
                                          std::move(key), std::move(suffix), timeout);
}

template <class Token>
auto async_touch(Store& store, std::string key, std::optional<Duration> ttl, Duration timeout,
                 Token&& token) {
  return detail::asio_call<void>(&Store::touch_async, std::forward<Token>(token), &store,
                                 std::move(key), ttl, timeout);
}

template <class Token>
auto async_remove(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<bool>(&Store::remove_async, std::forward<Token>(token), &store,
                                 std::move(key), timeout);
}

template <class Token>
auto async_exists(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<bool>(&Store::exists_async, std::forward<Token>(token), &store,
                                 std::move(key), timeout);
}

template <class Token>
auto async_queue_push(Store& store, std::string key, std::string item, Duration timeout,
                      Token&& token) {
  return detail::asio_call<std::uint64_t>(&Store::queue_push_async, std::forward<Token>(token),
                                          &store, std::move(key), std::move(item), timeout);
}

template <class Token>
auto async_queue_pop(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<detail::TakenValue>(&detail::queue_pop_async, std::forward<Token>(token),
                                               &store, std::move(key), timeout);
}

template <class Token>
auto async_queue_length(Store& store, std::string key, Duration timeout, Token&& token) {
  return detail::asio_call<std::uint64_t>(&Store::queue_length_async, std::forward<Token>(token),
                                          &store, std::move(key), timeout);
}

template <class Token>
auto async_multi_remove(Store& store, std::vector<std::string> keys, Duration timeout,
                        Token&& token) {
  return detail::asio_call<std::uint64_t>(&Store::multi_remove_async, std::forward<Token>(token),
                                          &store, detail::OwnedKeys(std::move(keys)), timeout);
}

template <class Token>
auto async_multi_exists(Store& store, std::vector<std::string> keys, Duration timeout,
                        Token&& token) {
  return detail::asio_call<std::vector<bool>>(&Store::multi_exists_async,
                                              std::forward<Token>(token), &store,
                                              detail::OwnedKeys(std::move(keys)), timeout);
}

template <class Token>
auto async_wait(Store& store, std::vector<std::string> keys, Duration timeout, Token&& token) {
  return detail::asio_call<void>(&Store::wait_async, std::forward<Token>(token), &store,
                                 detail::OwnedKeys(std::move(keys)), timeout);
}

template <class Token>
auto async_multi_get(Store& store, std::vector<std::string> keys, Duration timeout, Token&& token) {
  return detail::asio_call<std::vector<std::optional<std::string>>>(
      &Store::multi_get_async, std::forward<Token>(token), &store,
      detail::OwnedKeys(std::move(keys)), timeout);
}

template <class Token>
auto async_multi_set(Store& store, std::vector<std::pair<std::string, std::string>> entries,
                     WriteOptions options, Duration timeout, Token&& token) {
  return detail::asio_call<void>(&Store::multi_set_async, std::forward<Token>(token), &store,
                                 detail::OwnedEntries(std::move(entries)), options, timeout);
}

template <class Token>
auto async_list(Store& store, std::string prefix, std::uint64_t cursor, Duration timeout,
                Token&& token) {
  return detail::asio_call<KeyPage>(&Store::list_async, std::forward<Token>(token), &store,
                                    std::move(prefix), cursor, timeout);
}

template <class Token>
auto async_report_dead(Store& store, const ProcessId& process, std::string reason, Duration timeout,
                       Token&& token) {
  return detail::asio_call<void>(&Store::report_dead_async, std::forward<Token>(token), &store,
                                 process, std::move(reason), timeout);
}

template <class Token>
auto async_drop_namespace(Store& store, std::string name, Duration timeout, Token&& token) {
  return detail::asio_call<std::uint64_t>(&Store::drop_namespace_async, std::forward<Token>(token),
                                          &store, std::move(name), timeout);
}

template <class Token>
auto async_status(Store& store, Duration timeout, Token&& token) {
  return detail::asio_call<std::vector<std::pair<std::string, std::string>>>(
      &Store::status_async, std::forward<Token>(token), &store, timeout);
}

template <class Token>
auto async_reopen(Store& store, Duration timeout, Token&& token) {
  return detail::asio_call<void>(&Store::reopen_async, std::forward<Token>(token), &store, timeout);
}

MUSTER_END_NAMESPACE
