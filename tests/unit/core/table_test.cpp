#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "core/keys/block.h"
#include "engine_driver.h"

// Random requests against a model that is too simple to be wrong; the scripts say what each
// request promises.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct ModelKey {
  std::string value;
  core::Instant deadline = base::far_future;
  core::ConnectionId owner = 0;  // bound to its session
};

/// What the table should hold.
class Model {
 public:
  explicit Model(const core::Instant& now) : now_(now) {}

  ModelKey* find(const std::string& key) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return nullptr;
    if (found->second.deadline > now_) return &found->second;
    keys_.erase(found);
    return nullptr;
  }
  ModelKey& make(const std::string& key) { return keys_[key]; }
  void remove(const std::string& key) { keys_.erase(key); }
  void end_session(core::ConnectionId owner) {
    std::erase_if(keys_, [&](const auto& pair) { return pair.second.owner == owner; });
  }
  std::set<std::string> names() {
    std::erase_if(keys_, [&](const auto& pair) { return pair.second.deadline <= now_; });
    std::set<std::string> names;
    for (const auto& [key, value] : keys_) names.insert(key);
    return names;
  }

 private:
  const core::Instant& now_;
  std::map<std::string, ModelKey> keys_;
};

class TablePlay {
 public:
  explicit TablePlay(unsigned seed) : random_(seed) {
    for (int count = 0; count < 3; ++count) connections_.push_back(driver_.connect());
  }

  void step() {
    key_ = "k" + std::to_string(random_() % 12);
    from_ = connections_[random_() % connections_.size()];
    switch (random_() % 13) {
      case 0:
      case 1: return set();
      case 2: return remove();
      case 3: return append();
      case 4: return get();
      case 5: return take();
      case 6: return touch();
      case 7: return exists();
      case 8: return multi_set();
      case 9: return compare_set();
      case 11: return multi_get();
      case 10:
        if (random_() % 20 == 0) return end_a_session();
        return list();
      default: return driver_.pass(Duration(static_cast<int>(random_() % 200000)));
    }
  }

  /// Whatever happened, nothing is left when all sessions and keys are gone.
  void finish() {
    for (const core::ConnectionId connection : connections_) {
      driver_.apply(core::Goodbye{connection});
    }
    driver_.effects.clear();
    const core::ConnectionId last = driver_.connect();
    wire::Remove all;
    std::vector<std::string> names;
    for (int number = 0; number < 12; ++number) names.push_back("k" + std::to_string(number));
    for (const std::string& name : names) all.keys.push_back(name);
    driver_.ask(last, all);
    driver_.effects.clear();
    driver_.apply(core::Goodbye{last});
    driver_.effects.clear();
    driver_.pass(1s);
    const core::Counts counts = driver_.engine.counts();
    CHECK(counts.keys == 0);
    CHECK(counts.waits == 0);
    CHECK(counts.timers == 0);
    CHECK(counts.memory_bytes == 0);
  }

 private:
  core::SendReply ask(wire::RequestBody body) {
    const std::uint64_t id = driver_.ask(from_, std::move(body));
    const auto reply = driver_.reply(id);
    REQUIRE(reply.has_value());
    driver_.apply(core::Acknowledged{from_, &(acknowledged_ = {id})});
    return *reply;
  }
  wire::Ttl some_ttl() {
    if (random_() % 2 == 0) return std::nullopt;
    return Duration(static_cast<int>(random_() % 500000) + 1);
  }
  core::Instant deadline(const wire::Ttl& ttl) {
    return ttl ? driver_.now + *ttl : base::far_future;
  }
  std::string some_value() {
    std::size_t bytes = random_() % 40;
    if (random_() % 8 == 0) bytes += core::shared_value_bytes_min - 20;
    return std::string(bytes, static_cast<char>('a' + random_() % 26));
  }

  void set() {
    const std::string value = some_value();
    wire::Set request{key_, value, some_ttl(), random_() % 3 == 0, random_() % 3 == 0};
    const bool applied = !request.only_if_absent || model_.find(key_) == nullptr;
    const core::SendReply reply = ask(request);
    CHECK(wire::decode_body<wire::AppliedReply>(reply.head).value().applied == applied);
    if (!applied) return;
    model_.make(key_) = {value, deadline(request.ttl), request.bind_to_session ? from_ : 0};
  }
  void remove() {
    const std::int64_t expected = model_.find(key_) != nullptr ? 1 : 0;
    const core::SendReply reply = ask(wire::Remove{{key_}});
    CHECK(wire::decode_body<wire::NumberReply>(reply.head).value().number == expected);
    model_.remove(key_);
  }
  void append() {
    model_.find(key_);
    ModelKey& key = model_.make(key_);
    const std::string suffix = some_value();
    key.value += suffix;
    const core::SendReply reply = ask(wire::Append{key_, suffix});
    CHECK(wire::decode_body<wire::NumberReply>(reply.head).value().number ==
          static_cast<std::int64_t>(key.value.size()));
    if (key.value.size() > 10000) {
      ask(wire::Remove{{key_}});
      model_.remove(key_);
    }
  }
  void check_value(const core::SendReply& reply) {
    const ModelKey* key = model_.find(key_);
    if (key == nullptr) {
      CHECK(code_of(reply) == ErrorCode::not_found);
    } else {
      CHECK(value_of(reply) == key->value);
    }
  }
  void get() { check_value(ask(wire::Get{key_})); }
  void take() {
    check_value(ask(wire::Take{key_}));
    model_.remove(key_);
  }
  void touch() {
    const wire::Touch request{key_, some_ttl()};
    ModelKey* key = model_.find(key_);
    CHECK((ask(request).code == 0) == (key != nullptr));
    if (key != nullptr) key->deadline = deadline(request.ttl);
  }
  void exists() {
    const core::SendReply reply = ask(wire::Exists{{key_, "never"}});
    const std::vector<bool> expected = {model_.find(key_) != nullptr, false};
    CHECK(wire::decode_body<wire::PresenceReply>(reply.head).value().present == expected);
  }
  void multi_set() {
    const std::string other = "k" + std::to_string(random_() % 12);
    const std::string first = some_value();
    const std::string second = some_value();
    const wire::MultiSet request{{{key_, first}, {other, second}}, some_ttl()};
    CHECK(ask(request).code == 0);
    model_.make(key_) = {first, deadline(request.ttl), 0};
    model_.make(other) = {second, deadline(request.ttl), 0};
  }
  void multi_get() {
    std::vector<std::string> names;
    wire::MultiGet request;
    for (int number = 0; number < 12; ++number) names.push_back("k" + std::to_string(number));
    for (const std::string& name : names) request.keys.push_back(name);
    const std::string body = body_of(ask(request));
    const auto reply = wire::decode_body<wire::ValuesReply>(body).value();
    REQUIRE(reply.values.size() == names.size());
    for (std::size_t index = 0; index < names.size(); ++index) {
      const ModelKey* key = model_.find(names[index]);
      REQUIRE(reply.values[index].has_value() == (key != nullptr));
      if (key != nullptr) CHECK(*reply.values[index] == key->value);
    }
  }
  void compare_set() {
    ModelKey* key = model_.find(key_);
    const std::string desired = some_value();
    wire::CompareSet request{key_, std::nullopt, desired, some_ttl()};
    if (random_() % 2 == 0) {
      request.expected = key == nullptr ? std::string_view("?") : std::string_view(key->value);
    }
    const bool applied = request.expected.has_value() == (key != nullptr);
    const core::SendReply reply = ask(request);
    const std::string body = body_of(reply);
    const auto told = wire::decode_body<wire::AppliedReply>(body).value();
    CHECK(told.applied == applied);
    CHECK(told.value.has_value() == (!applied && key != nullptr));
    if (told.value) CHECK(*told.value == key->value);
    if (!applied) return;
    ModelKey& written = model_.make(key_);
    written.value = desired;
    written.deadline = deadline(request.ttl);
  }
  void list() {
    std::set<std::string> names;
    std::uint64_t cursor = 0;
    do {
      const core::SendReply reply = ask(wire::List{wire::ListKind::keys, "k", cursor, 3});
      const auto page = wire::decode_body<wire::ListReply>(reply.head).value();
      for (const wire::ListEntry& entry : page.entries) {
        const std::string name(entry.name);
        CHECK(names.insert(name).second);
        const ModelKey* key = model_.find(name);
        REQUIRE(key != nullptr);
        CHECK(entry.bound == (key->owner != 0));
        CHECK(entry.ttl.has_value() == (key->deadline != base::far_future));
        if (entry.ttl) CHECK(*entry.ttl == key->deadline - driver_.now);
      }
      cursor = page.cursor;
    } while (cursor != 0);
    CHECK(names == model_.names());
  }
  void end_a_session() {
    driver_.apply(core::Goodbye{from_});
    model_.end_session(from_);
    std::replace(connections_.begin(), connections_.end(), from_, driver_.connect());
  }

  std::mt19937 random_;
  EngineDriver driver_;
  Model model_{driver_.now};
  std::vector<core::ConnectionId> connections_;
  std::vector<std::uint64_t> acknowledged_;
  std::string key_;
  core::ConnectionId from_ = 0;
};

}  // namespace

TEST_CASE("random requests do what a simple model of the table does") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    TablePlay play(seed);
    for (int count = 0; count < 1000; ++count) play.step();
    play.finish();
  }
}

TEST_CASE("of many who take, each gets one value, in their order") {
  EngineDriver driver;
  const core::ConnectionId setter = driver.connect();
  std::vector<std::uint64_t> takes;
  for (int count = 0; count < 5; ++count) {
    takes.push_back(driver.ask(driver.connect(), wire::Take{"k"}, 10s));
  }
  for (const std::uint64_t take : takes) {
    driver.ask(setter, wire::Set{"k", "v", {}, false, false});
    CHECK(driver.reply(take).has_value());
  }
  CHECK(driver.engine.counts().keys == 0);
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("a value that some read and one takes in the same event comes to all of them") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{5000}}) {
    CAPTURE(bytes);
    EngineDriver driver;
    const core::ConnectionId setter = driver.connect();
    std::vector<std::uint64_t> waits;
    for (int count = 0; count < 3; ++count) {
      waits.push_back(driver.ask(driver.connect(), wire::Get{"k"}, 10s));
      waits.push_back(driver.ask(driver.connect(), wire::Take{"k"}, 10s));
    }
    const std::string value(bytes, 'v');
    // Two keys, so that more is freed and written in that event.
    driver.ask(setter, wire::MultiSet{{{"k", value}, {"other", "o"}, {"k", value}}, {}});
    int served_count = 0;
    for (const std::uint64_t wait : waits) {
      const auto reply = driver.reply(wait);
      if (!reply) continue;
      ++served_count;
      CHECK(value_of(*reply) == value);
    }
    CHECK(served_count == 4);  // all who read, and the first who takes
    CHECK(driver.engine.counts().keys == 1);
    CHECK(driver.engine.counts().waits == 2);
  }
}

TEST_CASE("keys expire in time, so many per event, and each counts as a timer") {
  constexpr int count = 20000;
  core::Options options;
  options.limits.cached_results_max = 2 * count;  // nothing is acknowledged
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  std::mt19937 random(3);
  std::vector<core::Instant> deadlines;
  for (int number = 0; number < count; ++number) {
    const Duration ttl(static_cast<int>(random() % 2'000'000 + 1'000'000));
    const std::string key = "k" + std::to_string(number);
    driver.ask(a, wire::Set{key, "v", ttl, false, false});
    if (number % 4 == 0) driver.ask(a, wire::Touch{key, ttl + 1s});
    driver.effects.clear();
    deadlines.push_back(driver.now + ttl + (number % 4 == 0 ? 1s : 0s));
  }
  std::sort(deadlines.begin(), deadlines.end());
  const std::uint64_t other_timers = driver.engine.counts().timers - count;
  std::uint64_t left = count;
  while (left > 0) {
    driver.now = driver.engine.next_deadline();
    driver.apply(core::Advance{});
    const core::Counts counts = driver.engine.counts();
    CHECK(left - counts.keys <= 512);
    left = counts.keys;
    CHECK(counts.timers == left + other_timers);
    const std::size_t gone = count - left;
    if (gone > 0) REQUIRE(deadlines[gone - 1] <= driver.now);
    if (gone < count && driver.engine.next_deadline() > driver.now) {
      REQUIRE(deadlines[gone] > driver.now - 1ms);
    }
  }
}

TEST_CASE("a wait that names a key twice is served once") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::uint64_t wait = driver.ask(a, wire::Wait{{"x", "y", "x"}}, 10s);
  driver.ask(a, wire::Set{"x", "", {}, false, false});
  CHECK_FALSE(driver.reply(wait).has_value());
  driver.ask(a, wire::MultiSet{{{"y", "1"}, {"x", "2"}, {"y", "3"}}, {}});
  CHECK(driver.reply(wait).has_value());
  CHECK_FALSE(driver.reply(wait).has_value());
}

TEST_CASE("a wait is not served by a key whose deadline has passed, swept or not") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  driver.ask(a, wire::Set{"x", "", Duration(1s), false, false});
  const std::uint64_t wait = driver.ask(a, wire::Wait{{"x", "y"}}, 10s);
  driver.now += 1s;  // and no Advance: the key's timer has not fired
  driver.ask(a, wire::Set{"y", "", {}, false, false});
  CHECK_FALSE(driver.reply(wait).has_value());
  driver.ask(a, wire::Set{"x", "", {}, false, false});
  CHECK(driver.reply(wait).has_value());
}

TEST_CASE("a refused multi_set leaves no trace, also when it names a key twice") {
  core::Options options;
  options.memory_bytes_max = 20000;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  driver.ask(a, wire::Set{"old", "1", {}, false, false});
  driver.effects.clear();
  const std::uint64_t used_bytes = driver.engine.counts().memory_bytes;
  const std::string large(15000, 'x');
  const std::uint64_t id = driver.ask(
      a, wire::MultiSet{{{"new", "a"}, {"old", "b"}, {"new", "c"}, {"big", large}, {"more", large}},
                        Duration(1s)});
  const auto reply = driver.reply(id);
  REQUIRE(reply.has_value());
  CHECK(code_of(*reply) == ErrorCode::resource_exhausted);
  CHECK(driver.engine.counts().keys == 1);
  const std::vector<std::uint64_t> ids = {id};
  driver.apply(core::Acknowledged{a, &ids});
  driver.effects.clear();
  CHECK(driver.engine.counts().memory_bytes <= used_bytes);
  const auto value = driver.reply(driver.ask(a, wire::Get{"old"}));
  CHECK(value_of(*value) == "1");
}

TEST_CASE("ten thousand keys that expire at once are removed in bounded portions") {
  core::Options options;
  options.limits.cached_results_max = 100;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  for (int number = 0; number < 10000; ++number) {
    const std::string key = "k" + std::to_string(number);
    driver.ask(a, wire::Set{key, "v", Duration(20s) - Duration(number), false, false});
    if (driver.effects.size() > 32)
      driver.effects.erase(driver.effects.begin(), driver.effects.begin() + 16);
  }
  driver.effects.clear();
  for (int second = 0; second < 39; ++second) {
    driver.pass(500ms);
    driver.apply(core::Heard{a});
  }
  CHECK(driver.engine.counts().keys == 10000);
  driver.now += 600ms;
  driver.apply(core::Advance{});
  CHECK(driver.engine.counts().keys >= 10000 - 256);
  CHECK(driver.engine.next_deadline() <= driver.now);
  for (int count = 0; count < 100; ++count) driver.apply(core::Advance{});
  CHECK(driver.engine.counts().keys == 0);
}
