#include "client/store_calls.h"

#include "client/decode.h"

namespace muster::client {
namespace {

/// `read` is as for `decoder`; `name` is the public call's.
template <class T, class Request, class Read>
Call<T> call(Request body, Read read,
             std::string_view name = wire::name_of(wire::operation<Request>)) {
  Call<T> made;
  made.subject.operation = name;
  made.body = std::move(body);
  made.decode = decoder<T, Request>(std::move(read));
  return made;
}

std::vector<std::string_view> listed(Keys keys) { return {keys.begin(), keys.end()}; }

constexpr auto read_nothing = [](const auto&, const auto&) {};
constexpr auto read_applied = [](const wire::AppliedReply& reply, const auto&) {
  return reply.applied;
};
constexpr auto read_value = [](const wire::ValueReply& reply, std::string& body) {
  return cut_out(body, reply.value);
};
constexpr auto read_number = [](const wire::NumberReply& reply, const auto&) {
  return reply.number;
};
constexpr auto read_count = [](const wire::NumberReply& reply, const auto&) {
  return static_cast<std::uint64_t>(reply.number);
};

}  // namespace

Call<bool> set_call(std::string_view key, std::string_view value, const SetOptions& options) {
  return call<bool>(
      wire::Set{key, value, options.ttl, options.only_if_absent, options.bind_to_session},
      read_applied);
}

Call<std::string> get_call(std::string_view key) {
  return call<std::string>(wire::Get{key}, read_value);
}

Call<std::string> take_call(std::string_view key) {
  return call<std::string>(wire::Take{key}, read_value);
}

Call<std::int64_t> add_call(std::string_view key, std::int64_t delta) {
  return call<std::int64_t>(wire::Add{key, delta}, read_number);
}

Call<Compared> compare_set_call(std::string_view key, std::optional<std::string_view> expected,
                                std::string_view desired, std::optional<Duration> ttl) {
  return call<Compared>(wire::CompareSet{key, expected, desired, ttl},
                        [](const wire::AppliedReply& reply, std::string& body) {
                          Compared compared{reply.applied, std::nullopt};
                          if (reply.value) compared.current = cut_out(body, *reply.value);
                          return compared;
                        });
}

Call<std::uint64_t> append_call(std::string_view key, std::string_view suffix) {
  return call<std::uint64_t>(wire::Append{key, suffix}, read_count);
}

Call<void> touch_call(std::string_view key, std::optional<Duration> ttl) {
  return call<void>(wire::Touch{key, ttl}, read_nothing);
}

Call<bool> remove_call(std::string_view key) {
  return call<bool>(wire::Remove{{key}},
                    [](const wire::NumberReply& reply, const auto&) { return reply.number != 0; });
}

Call<bool> exists_call(std::string_view key) {
  return call<bool>(wire::Exists{{key}}, [](const wire::PresenceReply& reply, const auto&) {
    return !reply.present.empty() && reply.present.front();
  });
}

Call<std::uint64_t> multi_remove_call(Keys keys) {
  return call<std::uint64_t>(wire::Remove{listed(keys)}, read_count, "multi_remove");
}

Call<std::vector<bool>> multi_exists_call(Keys keys) {
  return call<std::vector<bool>>(
      wire::Exists{listed(keys)},
      [](wire::PresenceReply& reply, const auto&) { return std::move(reply.present); },
      "multi_exists");
}

Call<void> wait_call(Keys keys) { return call<void>(wire::Wait{listed(keys)}, read_nothing); }

Call<Values> multi_get_call(Keys keys) {
  return call<Values>(wire::MultiGet{listed(keys)},
                      [](const wire::ValuesReply& reply, const auto&) {
                        return Values(reply.values.begin(), reply.values.end());
                      });
}

Call<void> multi_set_call(Entries entries, std::optional<Duration> ttl) {
  wire::MultiSet body;
  body.entries.reserve(entries.size());
  for (const auto& [key, value] : entries) body.entries.push_back({key, value});
  body.ttl = ttl;
  return call<void>(std::move(body), read_nothing);
}

Call<KeyPage> list_call(wire::ListKind kind, std::string_view prefix, std::uint64_t cursor) {
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

Call<void> report_dead_call(const ProcessId& process, std::string_view reason) {
  return call<void>(wire::ReportDead{process, reason}, read_nothing);
}

Call<Fields> status_call() {
  return call<Fields>(wire::Status{}, [](const wire::StatusReply& reply, const auto&) {
    return Fields(reply.fields.begin(), reply.fields.end());
  });
}

}  // namespace muster::client
