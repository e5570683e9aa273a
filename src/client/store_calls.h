#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/call.h"
#include "muster/span.h"
#include "muster/store.h"

// What each call of a Store asks, and how it reads the answer. The bodies view the arguments.

namespace muster::client {

using Keys = Span<const std::string_view>;
using Entries = Span<const std::pair<std::string_view, std::string_view>>;
using Values = std::vector<std::optional<std::string>>;
using Fields = std::vector<std::pair<std::string, std::string>>;

Call<bool> set_call(std::string_view key, std::string_view value, const SetOptions& options);
Call<std::string> get_call(std::string_view key);
Call<std::string> take_call(std::string_view key);
Call<std::int64_t> add_call(std::string_view key, std::int64_t delta);
Call<Compared> compare_set_call(std::string_view key, std::optional<std::string_view> expected,
                                std::string_view desired, std::optional<Duration> ttl);
Call<std::uint64_t> append_call(std::string_view key, std::string_view suffix);
Call<void> touch_call(std::string_view key, std::optional<Duration> ttl);
Call<bool> remove_call(std::string_view key);
Call<bool> exists_call(std::string_view key);
Call<std::uint64_t> multi_remove_call(Keys keys);
Call<std::vector<bool>> multi_exists_call(Keys keys);
Call<void> wait_call(Keys keys);
Call<Values> multi_get_call(Keys keys);
Call<void> multi_set_call(Entries entries, std::optional<Duration> ttl);
Call<KeyPage> list_call(wire::ListKind kind, std::string_view prefix, std::uint64_t cursor);
Call<void> report_dead_call(const ProcessId& process, std::string_view reason);
Call<Fields> status_call();

}  // namespace muster::client
