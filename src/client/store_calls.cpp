#include "client/store_calls.h"

#include "client/decode.h"

namespace muster::client {
namespace {

template <class T, class Decode>
Call<T> call(std::string_view operation, wire::RequestBody body, Decode decode) {
  Call<T> made;
  made.subject.operation = operation;
  made.body = std::move(body);
  made.decode = std::move(decode);
  return made;
}

std::vector<std::string_view> listed(Keys keys) { return {keys.begin(), keys.end()}; }

auto applied() {
  return decoder<bool, wire::AppliedReply>(
      [](const wire::AppliedReply& reply, const auto&) { return reply.applied; });
}

auto value() {
  return decoder<std::string, wire::ValueReply>(
      [](const wire::ValueReply& reply, std::string& body) { return cut_out(body, reply.value); });
}

template <class T>
auto number() {
  return decoder<T, wire::NumberReply>(
      [](const wire::NumberReply& reply, const auto&) { return static_cast<T>(reply.number); });
}

auto presence() {
  return decoder<std::vector<bool>, wire::PresenceReply>(
      [](wire::PresenceReply& reply, const auto&) { return std::move(reply.present); });
}

}  // namespace

Call<bool> set_call(std::string_view key, std::string_view value, const SetOptions& options) {
  return call<bool>(
      "set", wire::Set{key, value, options.ttl, options.only_if_absent, options.bind_to_session},
      applied());
}

Call<std::string> get_call(std::string_view key) {
  return call<std::string>("get", wire::Get{key}, value());
}

Call<std::string> take_call(std::string_view key) {
  return call<std::string>("take", wire::Take{key}, value());
}

Call<std::int64_t> add_call(std::string_view key, std::int64_t delta) {
  return call<std::int64_t>("add", wire::Add{key, delta}, number<std::int64_t>());
}

Call<Compared> compare_set_call(std::string_view key, std::optional<std::string_view> expected,
                                std::string_view desired, std::optional<Duration> ttl) {
  return call<Compared>(
      "compare_set", wire::CompareSet{key, expected, desired, ttl},
      decoder<Compared, wire::AppliedReply>([](const wire::AppliedReply& reply, std::string& body) {
        Compared compared{reply.applied, std::nullopt};
        if (reply.value) compared.current = cut_out(body, *reply.value);
        return compared;
      }));
}

Call<std::uint64_t> append_call(std::string_view key, std::string_view suffix) {
  return call<std::uint64_t>("append", wire::Append{key, suffix}, number<std::uint64_t>());
}

Call<void> touch_call(std::string_view key, std::optional<Duration> ttl) {
  return call<void>("touch", wire::Touch{key, ttl}, nothing_decoder());
}

Call<bool> remove_call(std::string_view key) {
  return call<bool>(
      "remove", wire::Remove{{key}},
      decoder<bool, wire::NumberReply>(
          [](const wire::NumberReply& reply, const auto&) { return reply.number != 0; }));
}

Call<bool> exists_call(std::string_view key) {
  return call<bool>(
      "exists", wire::Exists{{key}},
      decoder<bool, wire::PresenceReply>([](const wire::PresenceReply& reply, const auto&) {
        return !reply.present.empty() && reply.present.front();
      }));
}

Call<std::uint64_t> multi_remove_call(Keys keys) {
  return call<std::uint64_t>("multi_remove", wire::Remove{listed(keys)}, number<std::uint64_t>());
}

Call<std::vector<bool>> multi_exists_call(Keys keys) {
  return call<std::vector<bool>>("multi_exists", wire::Exists{listed(keys)}, presence());
}

Call<void> wait_call(Keys keys) {
  return call<void>("wait", wire::Wait{listed(keys)}, nothing_decoder());
}

Call<Values> multi_get_call(Keys keys) {
  return call<Values>(
      "multi_get", wire::MultiGet{listed(keys)},
      decoder<Values, wire::ValuesReply>([](const wire::ValuesReply& reply, const auto&) {
        return Values(reply.values.begin(), reply.values.end());
      }));
}

Call<void> multi_set_call(Entries entries, std::optional<Duration> ttl) {
  wire::MultiSet body;
  body.entries.reserve(entries.size());
  for (const auto& [key, value] : entries) body.entries.push_back({key, value});
  body.ttl = ttl;
  return call<void>("multi_set", std::move(body), nothing_decoder());
}

Call<KeyPage> list_call(wire::ListKind kind, std::string_view prefix, std::uint64_t cursor) {
  return call<KeyPage>(
      "list", wire::List{kind, prefix, cursor, 0},
      decoder<KeyPage, wire::ListReply>([](const wire::ListReply& reply, const auto&) {
        KeyPage page;
        page.keys.reserve(reply.entries.size());
        for (const wire::ListEntry& entry : reply.entries) {
          page.keys.push_back({std::string(entry.name), entry.value_bytes, entry.ttl, entry.bound});
        }
        page.cursor = reply.cursor;
        return page;
      }));
}

Call<void> report_dead_call(const ProcessId& process, std::string_view reason) {
  return call<void>("report_dead", wire::ReportDead{process, reason}, nothing_decoder());
}

Call<Fields> status_call() {
  return call<Fields>(
      "status", wire::Status{},
      decoder<Fields, wire::StatusReply>([](const wire::StatusReply& reply, const auto&) {
        return Fields(reply.fields.begin(), reply.fields.end());
      }));
}

}  // namespace muster::client
