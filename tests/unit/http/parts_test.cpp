#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "server/http/front/places.h"
#include "server/http/front/target.h"
#include "server/http/front/visitors/guard.h"
#include "server/http/front/visitors/host_names.h"
#include "server/http/tokens.h"

using namespace muster;
using namespace muster::server::http;

TEST_CASE("a token is its prefix and 256 bits, and its line has its digest alone") {
  std::array<unsigned char, token_random_bytes> random{};
  CHECK(token_of(random) == "muster-http-" + std::string(43, 'A'));
  random.fill(0xff);
  CHECK(token_of(random) == "muster-http-" + std::string(42, '_') + "8");
  TokenHolder holder{"one", Right::admin, {}};
  REQUIRE(make_digest("abc", holder.digest.data()));
  CHECK(line_of(holder) ==
        "one admin sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("what is written as a line is read as the same") {
  std::string text = "# a comment\n\n";
  for (int number = 0; number < 3; ++number) {
    TokenHolder holder{"n" + std::to_string(number), number == 1 ? Right::admin : Right::read, {}};
    holder.digest.fill(static_cast<unsigned char>(number * 17 + 1));
    text += line_of(holder) + "  # who\n";
  }
  const auto read = read_tokens(text);
  REQUIRE(read);
  REQUIRE(read->size() == 3);
  CHECK((*read)[1].name == "n1");
  CHECK((*read)[1].right == Right::admin);
  CHECK((*read)[2].digest[31] == 35);
}

TEST_CASE("of more tokens than there may be, none is taken") {
  std::string text;
  for (std::size_t number = 0; number <= tokens_max; ++number) {
    TokenHolder holder{"n", Right::read, {}};
    holder.digest[0] = static_cast<unsigned char>(number);
    holder.digest[1] = static_cast<unsigned char>(number >> 8);
    text += line_of(holder) + "\n";
  }
  const auto read = read_tokens(text);
  REQUIRE(!read);
  CHECK(read.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("failures are counted by unit, and a flood of units shares a bound") {
  Guard guard;
  const base::Instant now{std::chrono::seconds(5)};
  for (int unit = 0; unit < 5000; ++unit)
    guard.judge("Bearer x", "unit" + std::to_string(unit), now);
  CHECK(guard.judge("Bearer x", "another", now).verdict == Guard::Verdict::too_many);
  const base::Instant afterwards = now + std::chrono::minutes(2);
  CHECK(guard.judge("Bearer x", "another", afterwards).verdict == Guard::Verdict::unknown);
}

TEST_CASE("places are given back, by unit and of all") {
  Places places(3, 2);
  auto first = places.take("a");
  auto second = places.take("a");
  CHECK(first);
  CHECK(second);
  CHECK(!places.take("a"));
  auto third = places.take("b");
  CHECK(third);
  CHECK(!places.take("c"));
  first.reset();
  CHECK(places.take("a"));
  CHECK(places.take("c"));
  std::vector<std::shared_ptr<void>> refusals;
  while (auto place = places.take_for_refusal()) refusals.push_back(place);
  CHECK(refusals.size() == 64);
  refusals.pop_back();
  CHECK(places.take_for_refusal());
}

TEST_CASE("who has waited longest gives up his place, where that helps") {
  Places places(3, 2);
  std::vector<std::string> yielded;
  std::vector<Places::Place> seats;
  const auto waits = [&](const std::string& unit) {
    seats.push_back(places.take(unit));
    REQUIRE(seats.back());
    seats.back()->wait([&, at = seats.size() - 1, unit] {
      yielded.push_back(unit + std::to_string(at));
      seats[at].reset();
    });
  };
  waits("b");  // 0
  waits("a");  // 1
  waits("a");  // 2
  waits("a");  // 3: its unit is full, so one of it goes
  CHECK(yielded == std::vector<std::string>{"a1"});
  waits("c");  // 4: all are taken, so the one goes who has waited longest
  CHECK(yielded == std::vector<std::string>{"a1", "b0"});
  seats[2]->settle();
  seats[3]->settle();
  CHECK(!places.take("a"));
  CHECK(places.take("d"));
  CHECK(yielded == std::vector<std::string>{"a1", "b0", "c4"});
  seats[3].reset();
  seats[2].reset();
  CHECK(places.count() == 0);
}

TEST_CASE("names are compared without their port, and capitals do not matter") {
  const HostNames names({"Muster.example:80", "[fe80::1]", ""});
  CHECK(names.is_ours("muster.EXAMPLE", "192.0.2.1"));
  CHECK(names.is_ours("muster.example.:1234", "192.0.2.1"));
  CHECK(names.is_ours("[fe80::1]:1", "192.0.2.1"));
  CHECK(names.is_ours("192.0.2.1", "192.0.2.1"));
  CHECK(names.is_ours("[2001:db8::1]:80", "2001:db8::1"));
  CHECK(!names.is_ours("192.0.2.2", "192.0.2.1"));
  CHECK(!names.is_ours("", "192.0.2.1"));
  CHECK(!names.is_ours(":80", "192.0.2.1"));
  CHECK(!names.is_ours("muster.example:80a", "192.0.2.1"));
  CHECK(!names.is_ours("x.muster.example", "192.0.2.1"));
}

TEST_CASE("a target is a path without escapes, and a query as it came") {
  const auto target = read_target("/a%20b/%C3%BC?c=%20?d");
  REQUIRE(target);
  CHECK(target->path == "/a b/\xc3\xbc");
  CHECK(target->query == "c=%20?d");
  const auto whole = read_target("HTTP://a.example:80/b?c");
  REQUIRE(whole);
  CHECK(whole->host == "a.example:80");
  CHECK(whole->path == "/b");
  CHECK(!target->host);
  for (const char* wrong : {"", "a", "*", "http://a", "http://a?b", "ftp://a/", "/%", "/%4", "/%4g",
                            "/%00", "/%7f", "/%0A"})
    CHECK(!read_target(wrong));
}
