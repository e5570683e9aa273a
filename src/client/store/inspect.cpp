#include "muster/inspect.h"

#include <algorithm>
#include <type_traits>

#include "base/monotonic_now.h"
#include "base/text.h"
#include "client/decode.h"
#include "client/store/store_call.h"
#include "wire/forms/public_form.h"

// The calls of operators. Lists come in pages, each from the last entry of the one before;
// that of objects is one of keys, which have a cursor.

namespace muster::client {
namespace {

constexpr auto read_history = [](const wire::HistoryReply& reply, const auto&) {
  History page;
  page.forgotten = reply.forgotten;
  page.known_for = reply.known_for;
  for (const wire::HistoryRecord& record : reply.records) {
    page.events.push_back(wire::public_form(record));
  }
  return page;
};

/// One page: what `entries` of the reply are, in their public form.
template <class T, class Request, class Entry>
Result<std::vector<T>> page(Store& store, const Request& request,
                            std::vector<Entry> wire::ReplyTo<Request>::*entries, Duration timeout) {
  PreparedCall<std::vector<T>> call;
  call.context.operation = wire::name_of(wire::operation<Request>);
  call.body = request;
  call.decode = decoder<std::vector<T>, Request>([entries](const auto& reply, const auto&) {
    std::vector<T> read;
    for (const Entry& entry : reply.*entries) read.push_back(wire::public_form(entry));
    if constexpr (std::is_same_v<Request, wire::Sessions>) {
      const std::size_t count = std::min(read.size(), reply.keys.size());
      for (std::size_t index = 0; index < count; ++index) {
        if (reply.keys[index] != 0) read[index].key_id = base::hex_digits(reply.keys[index]);
      }
    }
    return read;
  });
  return run(store.impl(), timeout, std::move(call));
}

/// The timeout of a call of many pages: each has what is left of it.
class TimeoutOfAll {
 public:
  TimeoutOfAll(const Store& store, Duration timeout)
      : timeout_(timeout == default_timeout && store.impl() != nullptr
                     ? store.impl()->link()->options().timeout
                     : timeout),
        deadline_(base::deadline_after(base::monotonic_now(), timeout_)) {}

  Duration left() const {
    if (timeout_ <= Duration::zero()) return timeout_;  // asks once, or will be refused
    return std::max(deadline_ - base::monotonic_now(), Duration{1});
  }

 private:
  Duration timeout_;
  base::Instant deadline_;
};

/// All pages, each asked for by `ask(last entry, or null)`.
template <class T, class Ask>
Result<std::vector<T>> all_pages(Ask ask) {
  std::vector<T> all;
  for (;;) {
    Result<std::vector<T>> next = ask(all.empty() ? nullptr : &all.back());
    if (!next) return next;
    if (next->empty()) return all;
    for (T& entry : *next) all.push_back(std::move(entry));
  }
}

}  // namespace
}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

Result<History> inspect_history(Store& store, std::string_view group, std::uint64_t after,
                                Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  History history;
  for (;;) {
    Result<History> page =
        client::run(store.impl(), all.left(),
                    client::call<History>(wire::History{group, after}, client::read_history));
    if (!page) return page;
    history.forgotten = page->forgotten;
    history.known_for = page->known_for;
    if (page->events.empty()) return history;
    after = page->events.back().serial;
    for (GroupEvent& event : page->events) history.events.push_back(std::move(event));
  }
}

Result<std::vector<SessionInfo>> inspect_sessions(Store& store, Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  return client::all_pages<SessionInfo>([&](const SessionInfo* last) {
    return client::page<SessionInfo>(store, wire::Sessions{last ? last->id : 0},
                                     &wire::SessionsReply::sessions, all.left());
  });
}

Result<std::vector<GroupInfo>> inspect_groups(Store& store, Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  return client::all_pages<GroupInfo>([&](const GroupInfo* last) {
    return client::page<GroupInfo>(store, wire::Groups{last ? last->name : std::string_view()},
                                   &wire::GroupsReply::groups, all.left());
  });
}

Result<std::vector<WaiterInfo>> inspect_waiters(Store& store, Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  return client::all_pages<WaiterInfo>([&](const WaiterInfo* last) {
    return client::page<WaiterInfo>(store, wire::Waiters{last ? last->session : 0},
                                    &wire::WaitersReply::waiters, all.left());
  });
}

Result<GroupReport> inspect_group(Store& store, std::string_view name, Duration timeout) {
  client::PreparedCall<GroupReport> call;
  call.context = {"inspect_group", std::make_shared<const std::string>(name), 0, 0};
  call.body = wire::InspectGroup{name};
  call.decode = client::decoder<GroupReport, wire::InspectGroup>(
      [name = std::string(name)](const wire::InspectGroupReply& reply, const std::string&) {
        return wire::public_form(reply, name);
      });
  return client::run(store.impl(), timeout, std::move(call));
}

Result<std::vector<KeyInfo>> inspect_objects(Store& store, std::string_view prefix,
                                             Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  std::vector<KeyInfo> objects;
  std::uint64_t cursor = 0;
  do {
    Result<KeyPage> page = client::run(store.impl(), timeout,
                                       client::list_call(wire::ListKind::objects, prefix, cursor));
    if (!page) return std::move(page).error();
    for (KeyInfo& object : page->keys) objects.push_back(std::move(object));
    cursor = page->cursor;
  } while (cursor != 0);
  return objects;
}

Result<std::vector<NamespaceInfo>> inspect_namespaces(Store& store, Duration timeout) {
  const client::TimeoutOfAll all(store, timeout);
  return client::all_pages<NamespaceInfo>([&](const NamespaceInfo* last) {
    wire::NameSpaces request;
    if (last != nullptr) request.after = last->name;
    return client::page<NamespaceInfo>(store, request, &wire::NameSpacesReply::name_spaces,
                                       all.left());
  });
}

Result<WhoAmI> whoami(Store& store, Duration timeout) {
  const auto read = [](const wire::StatusReply& reply, const auto&) {
    WhoAmI self;
    for (const auto& [name, value] : reply.fields) {
      if (name == "identity") self.identity = value;
      if (name == "tenant") self.tenant = value;
      if (name == "namespaces") self.namespaces = value;
      if (name == "not_after") self.not_after = value;
      if (name == "credential_rights") self.credential_rights = value;
      if (name == "rights") self.rights = value;
    }
    return self;
  };
  return client::run(store.impl(), timeout, client::call<WhoAmI>(wire::WhoAmI{}, read));
}

MUSTER_END_NAMESPACE
