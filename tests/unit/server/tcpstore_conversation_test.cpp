#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/little_endian.h"
#include "support/tcpstore_bytes.h"
#include "support/tcpstore_guest.h"

// What clients of TCPStore are answered, byte by byte, by a real engine.

namespace muster::test::tcpstore {
namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;

/// One guest who has said VALIDATE, and others like it.
struct Talk : TcpStoreGuests {
  explicit Talk(core::Options options = {}) : TcpStoreGuests(std::move(options)) {}

  Guest& join(const std::string& name_space = "job") {
    Guest& guest = connect(name_space);
    say(guest, validate);
    CHECK(heard(guest).empty());
    return guest;
  }

  Guest& one = join();
};

core::Options small_options(std::uint64_t memory_bytes_max) {
  core::Options options;
  options.memory_bytes_max = memory_bytes_max;
  return options;
}

ErrorCode code_of_end(const TcpStoreGuest& guest) {
  CHECK_FALSE(guest.is_open());
  return guest.why_closed ? guest.why_closed->code : ErrorCode{};
}

TEST_CASE("every command of the newest dialect is answered as by TCPStore") {
  struct Exchange {
    std::string said;
    std::string answered;
  };
  const std::vector<Exchange> exchanges = {
      {"\x0D\x78\x56\x34\x12"s, "\x78\x56\x34\x12"s},                    // PING
      {"\x01\2\0\0\0\0\0\0\0/a\1\0\0\0\0\0\0\0001"s, ""},                // SET
      {"\x03\2\0\0\0\0\0\0\0/a"s, "\1\0\0\0\0\0\0\0001"s},               // GET
      {"\x04\2\0\0\0\0\0\0\0/a\2\0\0\0\0\0\0\0"s, "\3\0\0\0\0\0\0\0"s},  // ADD
      {"\x05\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/a"s, "\0"s},                // CHECK
      {"\x05\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/b"s, "\1"s},
      {"\x06\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/a"s, "\0"s},      // WAIT
      {"\x07"s, "\1\0\0\0\0\0\0\0"s},                          // GETNUMKEYS
      {"\x09\2\0\0\0\0\0\0\0/a\3\0\0\0\0\0\0\0two"s, ""},      // APPEND
      {"\x03\2\0\0\0\0\0\0\0/a"s, "\4\0\0\0\0\0\0\0003two"s},  // GET
      {"\x02\2\0\0\0\0\0\0\0/a\4\0\0\0\0\0\0\0003two\1\0\0\0\0\0\0\0004"s,
       "\1\0\0\0\0\0\0\0004"s},  // COMPARE_SET
      {"\x0A\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/a\2\0\0\0\0\0\0\0/b"s,
       "\1\0\0\0\0\0\0\0004\0\0\0\0\0\0\0\0"s},                              // MULTI_GET
      {"\x0B\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/c\1\0\0\0\0\0\0\0005"s, ""},    // MULTI_SET
      {"\x03\2\0\0\0\0\0\0\0/c"s, "\1\0\0\0\0\0\0\0005"s},                   // GET
      {"\x0C"s, "\1"s},                                                      // CANCEL_WAIT
      {"\x0E\2\0\0\0\0\0\0\0/q\4\0\0\0\0\0\0\0item"s, ""},                   // QUEUE_PUSH
      {"\x10\2\0\0\0\0\0\0\0/q"s, "\1\0\0\0\0\0\0\0"s},                      // QUEUE_LEN
      {"\x0F\2\0\0\0\0\0\0\0/q"s, "\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0item"s},  // QUEUE_POP
      {"\x0F\2\0\0\0\0\0\0\0/q"s, "\0\0\0\0\0\0\0\0"s},
      {"\x08\2\0\0\0\0\0\0\0/c"s, "\1\0\0\0\0\0\0\0"s},  // DELETE_KEY
      {"\x08\2\0\0\0\0\0\0\0/c"s, "\0\0\0\0\0\0\0\0"s},
      {"\x11"s, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/a"s},    // LIST_KEYS
      {"\x12\2\0\0\0\0\0\0\0/b\1\0\0\0\0\0\0\0"s, "\0"s},  // BARRIER
  };
  Talk each;
  Talk all_at_once;
  std::string said;
  std::string answered;
  for (const Exchange& exchange : exchanges) {
    CHECK(each.ask(each.one, exchange.said) == exchange.answered);
    said += exchange.said;
    answered += exchange.answered;
  }
  CHECK(all_at_once.ask(all_at_once.one, said) == answered);
  CHECK(each.one.is_open());
}

TEST_CASE("every command of the first dialect is answered as by TCPStore, but for WATCH_KEY") {
  TcpStoreGuests guests({}, server::tcpstore::Dialect::first);
  TcpStoreGuest& one = guests.connect();
  CHECK(guests.ask(one, "\0\1\0\0\0\0\0\0\0a\1\0\0\0\0\0\0\0005"s).empty());  // SET
  CHECK(guests.ask(one, "\1\1\0\0\0\0\0\0\0a\1\0\0\0\0\0\0\0005\1\0\0\0\0\0\0\0006"s) ==
        "\1\0\0\0\0\0\0\0006"s);                                                   // COMPARE_SET
  CHECK(guests.ask(one, "\2\1\0\0\0\0\0\0\0a"s) == "\1\0\0\0\0\0\0\0006"s);        // GET
  CHECK(guests.ask(one, "\3\1\0\0\0\0\0\0\0a"s + number(~0ULL)) == number(5));     // ADD
  CHECK(guests.ask(one, "\4\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0b"s) == not_ready);     // CHECK
  CHECK(guests.ask(one, "\5\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0a"s) == stop_waiting);  // WAIT
  CHECK(guests.ask(one, "\6"s) == number(1));                                      // GETNUMKEYS
  CHECK(guests.ask(one, "\x8\1\0\0\0\0\0\0\0a"s) == number(1));                    // DELETE_KEY
  CHECK(guests.ask(one, "\7\1\0\0\0\0\0\0\0a"s).empty());                          // WATCH_KEY
  CHECK(code_of_end(one) == ErrorCode::unsupported);
}

TEST_CASE("every command of PyTorch 2.1 is answered as by TCPStore") {
  TcpStoreGuests guests({}, server::tcpstore::Dialect::second);
  TcpStoreGuest& one = guests.connect();
  // All numbers are one less than in the newest dialect.
  const auto ask = [&](std::string said) {
    said[0] = static_cast<char>(said[0] - 1);
    return guests.ask(one, said);
  };
  CHECK(ask(set("/a", "5")).empty());
  CHECK(ask(compare_set("/a", "5", "6")) == text("6"));
  CHECK(ask(get("/a")) == text("6"));
  CHECK(ask(add("/a", 1)) == number(7));
  CHECK(ask(check({"/a"})) == ready);
  CHECK(ask(wait({"/b"})).empty());
  CHECK(ask(count_keys) == number(1));
  CHECK(ask(delete_key("/a")) == number(1));
  CHECK(ask(append("/a", "tail")).empty());
  CHECK(ask(multi_get({"/a", "/b"})) == text("tail") + text(""));
  CHECK(ask(cancel_wait) == wait_cancelled);
  CHECK(ask(multi_set({{"/b", "1"}})).empty());
  CHECK(ask(get("/b")) == text("1"));
  CHECK(one.is_open());
}

TEST_CASE("COMPARE_SET: what is answered is what is there afterwards, or what was expected") {
  Talk talk;
  const auto compare_set_answers = [&talk](std::string_view key, std::string_view expected,
                                           std::string_view desired) {
    return talk.ask(talk.one, compare_set(key, expected, desired));
  };
  const auto value = [&talk](std::string_view key) { return talk.ask(talk.one, get(key)); };
  // Absent, and nothing is expected: it is stored.
  CHECK(compare_set_answers("/k", "", "1") == text("1"));
  CHECK(value("/k") == text("1"));
  // Absent, and something is expected: nothing is stored.
  CHECK(compare_set_answers("/no", "x", "1") == text("x"));
  CHECK(talk.ask(talk.one, check({"/no"})) == not_ready);
  // There, and it is what was expected.
  CHECK(compare_set_answers("/k", "1", "2") == text("2"));
  CHECK(value("/k") == text("2"));
  // There, and it is not.
  CHECK(compare_set_answers("/k", "1", "3") == text("2"));
  CHECK(compare_set_answers("/k", "", "3") == text("2"));
  CHECK(value("/k") == text("2"));
  // An empty value is as good as any.
  CHECK(compare_set_answers("/k", "2", "") == text(""));
  CHECK(compare_set_answers("/k", "x", "4") == text(""));
  CHECK(compare_set_answers("/k", "", "4") == text("4"));
  CHECK(value("/k") == text("4"));
  CHECK(compare_set_answers("/e", "", "") == text(""));
  CHECK(talk.ask(talk.one, check({"/e"})) == ready);
  const std::string long_value(100'000, 'x');
  CHECK(compare_set_answers("/k", "4", long_value) == text(long_value));
  CHECK(compare_set_answers("/k", "", "5") == text(long_value));
  CHECK(compare_set_answers("/k", "4", "5") == text(long_value));
  CHECK(compare_set_answers("/k", long_value, "5") == text("5"));
}

TEST_CASE("COMPARE_SET that expects an empty value begins again when the key has gone meanwhile") {
  Talk talk;
  TcpStoreGuest& other = talk.join();
  talk.say(talk.one, set("/k", ""));
  talk.one.steps_left = 1;
  talk.say(talk.one, compare_set("/k", "", "mine"));
  CHECK(talk.one.is_postponed);
  CHECK(talk.ask(other, delete_key("/k")) == number(1));
  talk.go_on(talk.one);
  CHECK(talk.heard(talk.one) == text("mine"));
  CHECK(talk.ask(other, get("/k")) == text("mine"));

  talk.say(talk.one, set("/k", ""));
  talk.one.steps_left = 1;
  talk.say(talk.one, compare_set("/k", "", "mine"));
  talk.say(other, set("/k", "other"));
  talk.go_on(talk.one);
  CHECK(talk.heard(talk.one) == text("other"));
}

TEST_CASE("GET and MULTI_GET of keys that are not there are answered by nothing") {
  Talk talk;
  CHECK(talk.ask(talk.one, get("/no")) == text(""));
  talk.say(talk.one, set("/a", "1") + set("/b", ""));
  CHECK(talk.ask(talk.one, multi_get({"/no", "/a", "/b", "/a", "/never"})) ==
        text("") + text("1") + text("") + text("1") + text(""));
  CHECK(talk.ask(talk.one, multi_get({})).empty());
  CHECK(talk.ask(talk.one, get("/a")) == text("1"));
}

TEST_CASE("a long value is sent from where it is, also in the midst of others") {
  Talk talk;
  const std::string value(300'000, 'v');
  talk.say(talk.one, set("/long", value) + set("/short", "s"));
  CHECK(talk.ask(talk.one, get("/long")) == text(value));
  CHECK(talk.one.replies.shared_bytes == value.size());
  CHECK(talk.ask(talk.one, multi_get({"/short", "/long", "/no", "/long"})) ==
        text("s") + text(value) + text("") + text(value));
  CHECK(talk.one.replies.shared_bytes == 3 * value.size());
  talk.say(talk.one, push("/q", value));
  CHECK(talk.ask(talk.one, pop("/q")) == number(1) + text(value));
  CHECK(talk.one.replies.shared_bytes == 4 * value.size());
}

TEST_CASE("ADD counts in decimal, and ends the connection of who adds to what is no number") {
  Talk talk;
  TcpStoreGuest& other = talk.join();
  CHECK(talk.ask(talk.one, add("init/", 1)) == number(1));
  CHECK(talk.ask(talk.one, set("/n", "5") + add("/n", -7)) == number(~0ULL - 1));
  CHECK(talk.ask(talk.one, get("/n")) == text("-2"));
  CHECK(talk.ask(talk.one, set("/w", "word") + add("/w", 1) + get("/w")).empty());
  CHECK(code_of_end(talk.one) != ErrorCode{});
  CHECK(talk.ask(other, get("/w")) == text("word"));
}

TEST_CASE("a MULTI_SET is seen as a whole or not at all") {
  Talk talk;
  TcpStoreGuest& other = talk.join();
  Entries entries;
  Keys keys;
  for (int index = 0; index < 100; ++index) {
    keys.push_back("/" + std::to_string(index));
    entries.emplace_back(keys.back(), std::string(100, 'v'));
  }
  const std::string bytes = multi_set(entries);
  talk.say(talk.one, bytes.substr(0, bytes.size() - 1));
  CHECK(talk.ask(other, count_keys) == number(0));
  talk.say(talk.one, bytes.substr(bytes.size() - 1));
  CHECK(talk.ask(other, check(keys)) == ready);
  CHECK(talk.ask(other, count_keys) == number(100));
  CHECK(talk.ask(talk.one, multi_set({}) + multi_set({{"/0", "a"}, {"/0", "b"}}) + get("/0")) ==
        text("b"));
}

TEST_CASE("a MULTI_SET for which there is no memory changes nothing, and ends its connection") {
  Talk talk(small_options(1 << 20));
  TcpStoreGuest& other = talk.join();
  talk.say(other, set("/0", "before"));
  Entries entries;
  for (int index = 0; index < 400; ++index) {
    entries.emplace_back("/" + std::to_string(index), std::string(4000, 'v'));
  }
  talk.say(talk.one, multi_set(entries));
  CHECK(code_of_end(talk.one) == ErrorCode::resource_exhausted);
  CHECK(talk.ask(other, count_keys) == number(1));
  CHECK(talk.ask(other, get("/0")) == text("before"));
}

TEST_CASE("PING is answered by its own nonce") {
  Talk talk;
  for (const std::uint32_t nonce : {0U, 1U, 0x80000000U, ~0U}) {
    CHECK(talk.ask(talk.one, ping(nonce)) == number(nonce, 4));
  }
}

TEST_CASE("what is beyond a limit ends the connection; what is at it does not") {
  core::Options options;
  options.limits.key_bytes_max = 10;
  options.limits.value_bytes_max = 20;
  options.guest_keys_max = 3;
  Talk talk(options);
  TcpStoreGuest& other = talk.join();
  const std::string key(10, 'k');
  CHECK(talk.ask(talk.one, set(key, std::string(20, 'v')) + get(key)) ==
        text(std::string(20, 'v')));
  CHECK(talk.ask(talk.one, check({"a", "b", "c"}) + multi_get({"a", "b", "c"})) ==
        not_ready + text("") + text("") + text(""));
  CHECK(talk.ask(talk.one, multi_set({{"a", ""}, {"b", ""}, {"c", ""}}) + count_keys) == number(4));
  const auto ends = [&talk](const std::string& said) {
    TcpStoreGuest& guest = talk.join();
    CHECK(talk.ask(guest, said + get("a")).empty());
    return code_of_end(guest);
  };
  CHECK(ends(get(key + "k")) == ErrorCode::too_large);
  CHECK(ends(set("k", std::string(21, 'v'))) == ErrorCode::too_large);
  CHECK(ends(append(key, "v")) == ErrorCode::too_large);  // the value would be
  CHECK(ends(push("q", std::string(21, 'v'))) == ErrorCode::too_large);
  CHECK(ends(check({"a", "b", "c", "d"})) == ErrorCode::too_large);
  CHECK(ends(wait({"a", "b", "c", "d"})) == ErrorCode::too_large);
  CHECK(ends(multi_get({"a", "b", "c", "d"})) == ErrorCode::too_large);
  CHECK(ends(multi_set({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}})) == ErrorCode::too_large);
  CHECK(talk.ask(other, get(key)) == text(std::string(20, 'v')));
}

TEST_CASE("what no client says ends the connection of who says it alone") {
  Talk talk;
  TcpStoreGuest& before_validate = talk.connect();
  talk.say(before_validate, ping(1));
  CHECK(code_of_end(before_validate) == ErrorCode::protocol_error);
  TcpStoreGuest& unknown = talk.join();
  talk.say(unknown, command(19));
  CHECK(code_of_end(unknown) == ErrorCode::protocol_error);
  CHECK(talk.ask(talk.one, ping(1)) == number(1, 4));
  CHECK(talk.engine.counts().sessions == 1);
}

TEST_CASE("LIST_KEYS has every key once, and no queue, over any number of pages") {
  core::Options options;
  options.list_slots_per_page = 4;
  Talk talk(options);
  CHECK(talk.ask(talk.one, list_keys) == number(0));
  std::vector<std::string> keys = {"init/", "/a", "/prefix/a"};
  for (int index = 0; index < 200; ++index) keys.push_back("/" + std::to_string(index));
  for (const std::string& key : keys) talk.say(talk.one, set(key, "v"));
  talk.say(talk.one, push("/queue", "item"));
  const auto listed_keys = [](std::string_view bytes) {
    std::vector<std::string> found;
    const auto take = [&bytes] {
      REQUIRE(bytes.size() >= 8);
      const auto value = base::from_little_endian<std::uint64_t>(bytes.data());
      bytes.remove_prefix(8);
      return value;
    };
    for (std::uint64_t count = take(); count > 0; --count) {
      const std::uint64_t size = take();
      REQUIRE(bytes.size() >= size);
      found.emplace_back(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    CHECK(bytes.empty());
    std::sort(found.begin(), found.end());
    return found;
  };
  std::sort(keys.begin(), keys.end());
  CHECK(listed_keys(talk.ask(talk.one, list_keys)) == keys);

  // The same when it ends its turn after each page, or is put off; what comes behind it waits.
  TcpStoreGuest& other = talk.join();
  talk.one.has_turns = true;
  talk.say(talk.one, list_keys + ping(7));
  int turns_count = 0;
  while (talk.one.is_postponed) {
    CHECK(talk.heard(talk.one).empty());
    CHECK(talk.ask(other, ping(1)) == number(1, 4));
    ++turns_count;
    talk.go_on(talk.one, turns_count % 2);
  }
  CHECK(turns_count > 20);
  const std::string answered = talk.heard(talk.one);
  CHECK(listed_keys(answered.substr(0, answered.size() - 4)) == keys);
  CHECK(answered.substr(answered.size() - 4) == number(7, 4));
}

TEST_CASE("a list that finds no memory ends its connection, and what was listed is given back") {
  Talk talk(small_options(1 << 20));
  TcpStoreGuest& other = talk.join();
  for (int index = 0; index < 700; ++index) {
    talk.say(other, set(std::to_string(index) + std::string(900, 'k'), ""));
  }
  REQUIRE(other.is_open());
  const std::uint64_t before_bytes = talk.engine.counts().memory_bytes;
  talk.say(talk.one, list_keys);
  CHECK(code_of_end(talk.one) == ErrorCode::resource_exhausted);
  talk.drop(talk.one);
  talk.pass(1s);
  CHECK(talk.engine.counts().memory_bytes <= before_bytes);
  CHECK(talk.ask(other, count_keys) == number(700));
}

TEST_CASE("a namespace is emptied when all have been gone for its idle lifetime") {
  core::Options options;
  TcpStoreGuests guests(options);
  guests.terms.idle_lifetime = 30s;
  TcpStoreGuest& first = guests.connect();
  guests.say(first, validate + set("/a", "old") + push("/q", "old"));
  guests.disconnect(first);
  guests.pass(29s);
  TcpStoreGuest& second = guests.connect();
  CHECK(guests.ask(second, validate + get("/a")) == text("old"));
  guests.pass(100s);
  CHECK(guests.ask(second, get("/a")) == text("old"));
  guests.disconnect(second);
  guests.pass(32s);
  TcpStoreGuest& third = guests.connect();
  CHECK(guests.ask(third, validate + get("/a") + queue_length("/q")) == text("") + number(0));
  guests.disconnect(third);
  guests.pass(32s);
  CHECK(guests.engine.counts().memory_bytes < 1000);
}

}  // namespace
}  // namespace muster::test::tcpstore
