#include <malloc.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "engine_driver.h"

// What events cost, in steps: it decides how much a connection may ask for in a turn.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t page_bytes = 64 << 10;

std::string nth(std::string prefix, int number) {
  return std::move(prefix) + std::to_string(1000000 + number);
}

/// What the request costs.
std::uint64_t work_of(EngineDriver& driver, core::ConnectionId from, wire::RequestBody body) {
  driver.effects.clear();
  driver.ask(from, std::move(body));
  return driver.engine.work();
}

}  // namespace

TEST_CASE("a request costs a step, its reply another") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  CHECK(work_of(driver, a, wire::Set{"k", "v", {}, false, false}) == 2);
  CHECK(work_of(driver, a, wire::Get{"k"}) == 2);
  driver.apply(core::Heard{a});
  CHECK(driver.engine.work() == 1);
}

TEST_CASE("keys, entries of lists, and pages of memory that are copied cost a step each") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  wire::MultiSet pairs;
  wire::Exists exists;
  std::vector<std::string> names;
  for (int number = 0; number < 100; ++number) names.push_back(nth("k", number));
  for (const std::string& name : names) {
    pairs.entries.push_back({name, "v"});
    exists.keys.push_back(name);
  }
  CHECK(work_of(driver, a, pairs) == 102);
  CHECK(work_of(driver, a, exists) == 102);
  CHECK(work_of(driver, a, wire::List{wire::ListKind::keys, "k", 0, 0}) == 102);
  CHECK(work_of(driver, a, wire::Remove{exists.keys}) == 202);  // looks for them, and they go

  const std::string value(20480, 'v');
  CHECK(work_of(driver, a, wire::Set{"k", value, {}, false, false}) == 7);
  CHECK(work_of(driver, a, wire::Append{"k", value}) == 12);
  CHECK(work_of(driver, a, wire::MultiGet{{"k"}}) == 13);
  CHECK(work_of(driver, a, wire::Get{"k"}) == 2);  // shared
}

TEST_CASE("timers cost a step each, and what they bring about") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  for (int number = 0; number < 20; ++number) driver.ask(a, wire::Get{nth("k", number)}, 1s);
  driver.now += 1001ms;
  driver.apply(core::Heard{a});
  driver.now += 200ms;  // it may have been taken for a pause
  driver.apply(core::Advance{});
  CHECK(driver.engine.work() == 41);
}

TEST_CASE("whoever inspects is told in pages, which cost what is on them") {
  constexpr int sessions = 3000;
  constexpr int waiting = 1500;
  EngineDriver driver;
  std::vector<core::ConnectionId> connections;
  for (int number = 0; number < sessions; ++number) connections.push_back(driver.connect());
  const core::ConnectionId a = connections.front();
  CHECK(work_of(driver, a, wire::Waiters{}) == 2);
  const std::uint64_t status = work_of(driver, a, wire::Status{});
  CHECK(status < 200);
  for (int number = 0; number < waiting; ++number) {
    driver.ask(connections[static_cast<std::size_t>(2 * number)], wire::Get{"k"}, 1s);
    driver.effects.clear();
  }
  CHECK(work_of(driver, a, wire::Status{}) == status);

  std::uint64_t last = 0;
  int pages = 0;
  int seen = 0;
  for (;; ++pages) {
    const auto reply = driver.reply(driver.ask(a, wire::Sessions{last}));
    REQUIRE(reply);
    CHECK(reply->head.size() < page_bytes + 256);
    const auto page = wire::decode_body<wire::SessionsReply>(reply->head)->sessions;
    CHECK(driver.engine.work() == page.size() + 2);
    if (page.empty()) break;
    for (const wire::SessionEntry& entry : page) {
      CHECK(entry.id == ++last);
      ++seen;
    }
  }
  CHECK(seen == sessions);
  CHECK(pages < 6);

  last = 0;
  seen = 0;
  for (;;) {
    const auto reply = driver.reply(driver.ask(a, wire::Waiters{last}));
    CHECK(reply->head.size() < page_bytes + 256);
    const auto page = wire::decode_body<wire::WaitersReply>(reply->head)->waiters;
    if (page.empty()) break;
    for (const wire::WaiterEntry& entry : page) {
      CHECK(entry.session > last);
      last = entry.session;
      ++seen;
    }
  }
  CHECK(seen == waiting);
  driver.pass(2s);
  CHECK(work_of(driver, a, wire::Waiters{}) == 2);
}

TEST_CASE("the waits of one session fit a page, and others follow on the next") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const core::ConnectionId b = driver.connect();
  const std::string long_name(1000, 'k');
  for (int number = 0; number < 500; ++number) {
    driver.ask(a, wire::Get{nth(long_name, number).substr(7)}, 10s);
    driver.now += 1us;
  }
  driver.ask(b, wire::Get{"short"}, 10s);
  driver.effects.clear();
  const auto first = driver.reply(driver.ask(a, wire::Waiters{}));
  CHECK(first->head.size() < page_bytes + 2048);
  const auto page = wire::decode_body<wire::WaitersReply>(first->head)->waiters;
  REQUIRE(page.size() > 50);
  CHECK(page.front().age == 500us);  // waits longest
  CHECK(page.back().age == 501us - Duration(page.size()));
  CHECK(page.back().session == 1);
  const auto next = driver.reply(driver.ask(a, wire::Waiters{1}));
  CHECK(wire::decode_body<wire::WaitersReply>(next->head)->waiters.size() == 1);
}

TEST_CASE("groups are listed by name, in pages") {
  constexpr int groups = 2000;
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  for (int number = groups; number > 0; --number) {
    const std::string name = nth("group", number);
    driver.ask(a, wire::Join{name, 0, 2, 1h, false, {}}, 100s);
    driver.effects.clear();
  }
  std::string last;
  int seen = 0;
  for (;;) {
    const auto reply = driver.reply(driver.ask(a, wire::Groups{last}));
    REQUIRE(reply);
    CHECK(reply->head.size() < page_bytes + 256);
    const auto page = wire::decode_body<wire::GroupsReply>(reply->head)->groups;
    CHECK(driver.engine.work() == page.size() + 2);
    if (page.empty()) break;
    for (const wire::GroupEntry& entry : page) {
      CHECK(entry.name > last);
      last = entry.name;
      ++seen;
    }
  }
  CHECK(seen == 1024);  // so many requests of one session wait
}

TEST_CASE("namespaces are listed by name, in pages") {
  constexpr int name_spaces = 2000;
  core::Options options;
  options.name_spaces.per_unit_max = name_spaces;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  for (int number = name_spaces; number > 0; --number) driver.connect(nth("n", number));
  driver.effects.clear();
  std::optional<std::string> last;
  int seen = 0;
  for (;;) {
    const auto reply = driver.reply(driver.ask(a, wire::NameSpaces{last}));
    REQUIRE(reply);
    CHECK(reply->head.size() < page_bytes + 256);
    const auto page = wire::decode_body<wire::NameSpacesReply>(reply->head)->name_spaces;
    CHECK(driver.engine.work() == page.size() + 2);
    if (page.empty()) break;
    for (const wire::NameSpaceEntry& entry : page) {
      CHECK((!last || entry.name > *last));
      CHECK(entry.sessions == 1);
      last = entry.name;
      ++seen;
    }
  }
  CHECK(seen == name_spaces + 1);  // and the default one
}

TEST_CASE("a page of any list is not begun while there is no room for it") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::vector<wire::RequestBody> lists = {wire::List{}, wire::Sessions{}, wire::Groups{},
                                                wire::Waiters{}, wire::NameSpaces{}};
  for (const wire::RequestBody& body : lists) {
    CAPTURE(wire::name_of(wire::operation_of(body)));
    wire::Request request;
    request.id = driver.next_request_id();
    request.body = body;
    core::Requested event{a, &request};
    event.unsent.uncharged_bytes = std::uint64_t{1} << 40;
    driver.effects.clear();
    driver.apply(event);
    REQUIRE(driver.effects.size() == 1);
    const auto* const postponed = std::get_if<core::Postpone>(&driver.effects.front());
    REQUIRE(postponed != nullptr);
    CHECK(postponed->bytes >= page_bytes);
  }
}

TEST_CASE("a namespace with very many keys is dropped in pieces") {
  constexpr int key_count = 20'000;
  core::Options options;
  EngineDriver driver(options);
  const core::ConnectionId supervisor = driver.connect("", wire::Role::supervisor);
  const core::ConnectionId a = driver.connect("many");
  std::vector<std::string> names;
  for (int number = 0; number < key_count; ++number) names.push_back(nth("k", number));
  for (auto name = names.begin(); name != names.end(); name += 1000) {
    wire::MultiSet pairs;
    for (auto one = name; one != name + 1000; ++one) pairs.entries.push_back({*one, "v"});
    pairs.ttl = Duration(1h);
    driver.ask(a, pairs);
  }
  CHECK(driver.engine.counts().keys == key_count);
  driver.apply(core::Goodbye{a});
  driver.works_off = false;
  CHECK(work_of(driver, supervisor, wire::DropNameSpace{"many"}) < 2 * options.work_per_event_max);
  CHECK(driver.engine.counts().keys == 0);
  int events = 1;
  for (; driver.engine.has_backlog(); ++events) {
    driver.apply(core::Continue{});
    CHECK(driver.engine.work() < 2 * options.work_per_event_max);
  }
  CHECK(events > key_count / 2 / static_cast<int>(options.work_per_event_max));
  driver.effects.clear();
  driver.apply(core::Goodbye{supervisor});
  driver.apply(core::Advance{});
  CHECK(driver.engine.counts().memory_bytes == 0);
  CHECK(driver.engine.counts().timers == 0);
}

TEST_CASE("what very many keys took is joined in pieces, too, and not in the turn of who is next") {
  const auto kept_apart_bytes = [] { return ::mallinfo2().fsmblks; };
  constexpr int key_count = 60'000;
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  std::vector<std::string> names;
  for (int number = 0; number < key_count; ++number) names.push_back(nth("k", number));
  for (auto name = names.begin(); name != names.end(); name += 1000) {
    wire::MultiSet pairs;
    for (auto one = name; one != name + 1000; ++one) pairs.entries.push_back({*one, "v"});
    pairs.ttl = Duration(1s);
    driver.ask(a, pairs);
  }
  driver.effects.clear();
  const std::size_t before = kept_apart_bytes();
  driver.works_off = false;
  driver.now += 2s;
  std::size_t most = 0;
  while (driver.engine.counts().keys != 0) {
    driver.apply(core::Advance{});
    most = std::max(most, kept_apart_bytes());
  }
  CHECK(most < before + (512U << 10));
}

TEST_CASE("long values that one request removes are given back in pieces") {
  const auto in_use_bytes = [] {
    const struct ::mallinfo2 all = ::mallinfo2();
    return all.uordblks + all.hblkhd;
  };
  constexpr int key_count = 32;
  constexpr std::size_t bytes_of_each = 1 << 20;
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::uint64_t charged_before = driver.engine.counts().memory_bytes;
  wire::Remove remove;
  std::vector<std::string> names;
  for (int number = 0; number < key_count; ++number) names.push_back(nth("k", number));
  for (const std::string& name : names) {
    driver.ask(a, wire::Set{name, std::string(bytes_of_each, 'v'), {}, false, false});
    remove.keys.push_back(name);
  }
  driver.effects.clear();
  const std::size_t full_bytes = in_use_bytes();
  driver.works_off = false;
  CHECK(work_of(driver, a, remove) < 100);
  CHECK(driver.engine.counts().memory_bytes < charged_before + bytes_of_each);
  int events = 1;
  for (; driver.engine.has_backlog(); ++events) {
    driver.apply(core::Continue{100});
    CHECK(driver.engine.work() < 200);
  }
  CHECK(events > key_count);
  if (full_bytes == 0) return;  // a sanitizer's allocator tells nothing
  CHECK(in_use_bytes() + (key_count - 1) * bytes_of_each < full_bytes);
}

TEST_CASE("keys with long names are listed in pages of bounded length") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::string long_name(1000, 'k');
  for (int number = 0; number < 300; ++number) {
    driver.ask(a, wire::Set{nth(long_name, number).substr(7), "v", {}, false, false});
  }
  std::uint64_t cursor = 0;
  std::size_t seen = 0;
  do {
    const auto reply = driver.reply(driver.ask(a, wire::List{wire::ListKind::keys, "", cursor, 0}));
    CHECK(reply->head.size() < page_bytes + 2048);
    const auto page = *wire::decode_body<wire::ListReply>(reply->head);
    seen += page.entries.size();
    cursor = page.cursor;
  } while (cursor != 0);
  CHECK(seen == 300);
}

TEST_CASE("status names the other namespaces in which requests are parked, as long as they are") {
  EngineDriver driver;
  const core::ConnectionId own = driver.connect("own");
  std::vector<core::ConnectionId> others;
  for (int number = 0; number < 20; ++number) others.push_back(driver.connect(nth("n", number)));
  const auto told = [&](std::string_view name) {
    const auto reply = driver.reply(driver.ask(own, wire::Status{}));
    const auto status = wire::decode_body<wire::StatusReply>(reply->head);
    for (const auto& [field, value] : status->fields) {
      if (field == name) return std::string(value);
    }
    return std::string();
  };
  driver.ask(own, wire::Get{"k"}, 10s);
  CHECK(told("other_namespaces_waiting_count") == "0");
  for (const core::ConnectionId other : others) driver.ask(other, wire::Get{"k"}, 10s);
  CHECK(told("other_namespaces_waiting_count") == "20");
  CHECK(told("other_namespaces_waiting").ends_with("'n1000015', ..."));
  for (std::size_t number = 0; number < 19; ++number) driver.apply(core::Goodbye{others[number]});
  CHECK(told("other_namespaces_waiting_count") == "1");
  CHECK(told("other_namespaces_waiting") == "'n1000019'");
  driver.pass(11s);
  CHECK(told("other_namespaces_waiting_count") == "0");
  CHECK(told("other_namespaces_waiting").empty());
}
