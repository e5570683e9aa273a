#include <set>

#include <doctest/doctest.h>

#include "group_driver.h"

// Streams: what they cost and what they leave behind. The rules themselves are scripts.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

wire::Send object(const GroupDriver& driver, std::uint64_t tag, std::uint64_t sequence,
                  std::string_view value = "v") {
  return {driver.epoch, 1, tag, sequence, 0, value};
}

wire::Receive wanted(const GroupDriver& driver, std::uint64_t tag, std::uint64_t sequence) {
  return {driver.epoch, 0, tag, sequence, 0};
}

}  // namespace

TEST_CASE("a stream in which nothing is leaves a small counter behind, until its epoch is over") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  constexpr std::uint64_t count = 10'000;
  for (std::uint64_t tag = 0; tag < count; ++tag) {
    driver.call(ranks[0], object(driver, tag, 0));
    driver.call(ranks[1], wanted(driver, tag, 0));
    driver.acknowledge_all();
  }
  const core::Counts counts = driver.engine.counts();
  CHECK(counts.objects == 0);
  CHECK(counts.streams == count);
  CHECK(counts.memory_bytes - memory <= count * 128);
  for (const core::ConnectionId rank : ranks) driver.call(rank, wire::Leave{driver.epoch});
  driver.acknowledge_all();
  CHECK(driver.engine.counts().streams == 0);
  CHECK(driver.engine.counts().memory_bytes == 0);
}

TEST_CASE("streams to a rank that left take no more memory than streams that it has emptied") {
  const auto memory_after_leave = [](bool receives) {
    GroupDriver driver;
    const auto ranks = driver.form(2);
    for (std::uint64_t tag = 0; tag < 100; ++tag) {
      driver.call(ranks[0], object(driver, tag, 0));
      if (receives) driver.call(ranks[1], wanted(driver, tag, 0));
      driver.acknowledge_all();
    }
    CHECK(driver.engine.counts().objects == (receives ? 0 : 100));
    driver.call(ranks[1], wire::Leave{driver.epoch});
    driver.acknowledge_all();
    CHECK(driver.engine.counts().objects == 0);
    return driver.engine.counts().memory_bytes;
  };
  CHECK(memory_after_leave(false) == memory_after_leave(true));
}

TEST_CASE("receives that come before their objects leave nothing") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  for (std::uint64_t tag = 0; tag < 100; ++tag) driver.call(ranks[1], wanted(driver, tag, 0), 1s);
  driver.pass(2s);
  CHECK(driver.take_replies().size() == 100);
  CHECK(driver.engine.counts().memory_bytes == memory);
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("objects arrive in order though their acknowledgements come late and out of order") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  for (std::uint64_t sequence = 0; sequence < 10; ++sequence) {
    driver.call(ranks[0], object(driver, 7, sequence, std::to_string(sequence)));
  }
  driver.acknowledge_all();
  std::vector<std::uint64_t> requests;
  for (std::uint64_t sequence = 0; sequence < 10; ++sequence) {
    const std::uint64_t id = driver.call(ranks[1], wanted(driver, 7, sequence));
    requests.push_back(id);
    const std::string body = body_of(driver.take_replies().at(id));
    const auto received = wire::decode_body<wire::ReceiveReply>(body).value();
    CHECK(received.sequence == sequence);
    CHECK(received.value == std::to_string(sequence));
  }
  driver.acknowledge(ranks[1], {requests[4], requests[2], requests[9], requests[0]});
  CHECK(driver.engine.counts().objects == 0);
}

TEST_CASE("thousands of expired objects are one range") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  for (std::uint64_t sequence = 0; sequence < 5'000; ++sequence) {
    driver.call(ranks[0], object(driver, 0, sequence, "some bytes"));
    driver.acknowledge_all();
  }
  driver.call(ranks[0], wire::ExpireData{driver.epoch, Duration(0)});
  const std::string body = body_of(driver.take_replies().begin()->second);
  CHECK(wire::decode_body<wire::NumberReply>(body).value().number == 5'000);
  CHECK(driver.engine.counts().objects == 0);
  CHECK(driver.engine.counts().memory_bytes - memory < 1'000);
  driver.call(ranks[1], wanted(driver, 0, 0));
  const Error error = error_in(driver.take_replies().begin()->second);
  CHECK(error.code == ErrorCode::expired);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
}

TEST_CASE("a listing sees each object that stays exactly once, with bounded work per page") {
  core::Options options;
  options.list_slots_per_page = 16;
  GroupDriver driver(options);
  const auto ranks = driver.form(2);
  for (std::uint64_t tag = 0; tag < 200; ++tag) {
    driver.call(ranks[0], object(driver, tag, 0));
    driver.acknowledge_all();
  }
  std::multiset<std::string> names;
  std::uint64_t cursor = 0;
  std::uint64_t taken = 0;
  do {
    wire::List list;
    list.kind = wire::ListKind::objects;
    list.prefix = "group/g/";
    list.cursor = cursor;
    driver.call(ranks[0], list);
    const std::string body = body_of(driver.take_replies().begin()->second);
    const auto page = wire::decode_body<wire::ListReply>(body).value();
    CHECK(page.entries.size() <= 16);
    for (const wire::ListEntry& entry : page.entries) names.emplace(entry.name);
    cursor = page.cursor;
    // Meanwhile objects with even tags go.
    driver.call(ranks[1], wanted(driver, taken, 0));
    driver.acknowledge_all();
    taken += 2;
  } while (cursor != 0);
  const std::string path = "group/g/epoch/" + std::to_string(driver.epoch) + "/stream/0-1/tag/";
  for (std::uint64_t tag = 1; tag < 200; tag += 2) {
    CHECK(names.count(path + std::to_string(tag) + "/0") == 1);
  }
}

TEST_CASE("an object that does not fit is refused and leaves no trace") {
  core::Options options;
  options.memory_bytes_max = 20'000;
  GroupDriver driver(options);
  const auto ranks = driver.form(2);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  for (int time = 0; time < 100; ++time) {
    const std::uint64_t id = driver.call(ranks[0], object(driver, 5, 0, std::string(30'000, 'x')));
    CHECK(error_in(driver.take_replies().begin()->second).code == ErrorCode::resource_exhausted);
    driver.acknowledge(ranks[0], {id});
  }
  CHECK(driver.engine.counts().memory_bytes == memory);
  CHECK(driver.engine.counts().streams == 0);
}

namespace {

/// The replies to the calls, as the codes of their errors and how often each came.
std::map<ErrorCode, int> codes_of(const std::map<std::uint64_t, core::SendReply>& replies) {
  std::map<ErrorCode, int> codes;
  for (const auto& [id, reply] : replies) ++codes[error_in(reply).code];
  return codes;
}

std::size_t listed_objects(GroupDriver& driver, core::ConnectionId from) {
  const auto reply = driver.reply(driver.ask(from, wire::List{wire::ListKind::objects, "", 0, 0}));
  return wire::decode_body<wire::ListReply>(reply->head)->entries.size();
}

/// One event after the other, each with little work.
int work_off(GroupDriver& driver) {
  int events = 0;
  for (; driver.engine.has_backlog(); ++events) {
    driver.apply_alone(core::Continue{});
    CHECK(driver.engine.work() < 3 * driver.engine.options().work_per_event_max);
  }
  return events;
}

}  // namespace

TEST_CASE("very many objects that nobody gets any more are dropped at once, and go in pieces") {
  constexpr std::uint64_t count = 20'000;
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const core::ConnectionId other = driver.connect();
  for (std::uint64_t number = 0; number < count; ++number) {
    driver.call(ranks[0], object(driver, number % 5000, number / 5000));
    driver.acknowledge_all();
  }
  CHECK(driver.engine.counts().objects == count);
  driver.works_off = false;
  const std::uint64_t most_work = driver.engine.options().work_per_event_max;
  SUBCASE("the receiver leaves") { driver.call(ranks[1], wire::Leave{driver.epoch}); }
  SUBCASE("a rank is lost") {
    driver.apply(core::Goodbye{other});
    driver.apply(core::Disconnected{ranks[1], core::DisconnectCause::closed});
    driver.apply(core::Heard{ranks[0]});
    driver.now += driver.engine.options().limits.grace;
    driver.apply(core::Heard{ranks[0]});
    driver.apply(core::Advance{});
  }
  CHECK(driver.engine.work() < 3 * most_work);
  CHECK(driver.engine.counts().objects == 0);
  CHECK(driver.engine.has_backlog());
  driver.effects.clear();
  CHECK(listed_objects(driver, ranks[0]) == 0);
  CHECK(work_off(driver) > static_cast<int>(count / most_work / 2));

  // The counters of its streams are left; they go in pieces with the epoch.
  CHECK(driver.engine.counts().streams == 5000);
  driver.apply(core::Goodbye{ranks[0]});
  driver.apply(core::Goodbye{ranks[1]});
  CHECK(driver.engine.work() < 3 * most_work);
  CHECK(work_off(driver) > static_cast<int>(5000 / most_work / 2));
  CHECK(driver.engine.counts().streams == 0);
  CHECK(driver.engine.counts().epochs == 0);
}

TEST_CASE("very many receivers are told in pieces that their source has gone, each of them once") {
  constexpr int count = 1000;
  core::Options options;
  options.work_per_event_max = 64;
  GroupDriver driver(options);
  const auto ranks = driver.form(3);
  for (std::uint64_t tag = 0; tag < count; ++tag) {
    driver.call(ranks[1], wanted(driver, tag, 0), tag == count - 1 ? 1s : 30s);
  }
  driver.call(ranks[2], wire::Receive{driver.epoch, 1, 0, 0, 0});
  CHECK(driver.engine.counts().waits == count + 1);
  driver.effects.clear();
  driver.works_off = false;
  driver.call(ranks[0], wire::Leave{driver.epoch});
  CHECK(driver.engine.work() < 3 * options.work_per_event_max);
  CHECK(driver.engine.has_backlog());

  // Meanwhile nobody waits for it any more, and who comes too late is told the same.
  const auto reply = driver.reply(driver.ask(ranks[2], wire::InspectGroup{"g"}));
  CHECK(wire::decode_body<wire::InspectGroupReply>(body_of(*reply))->receivers.size() == 1);
  driver.take_replies();
  driver.now += 2s;
  driver.apply(core::Advance{});
  CHECK(codes_of(driver.take_replies()) == std::map<ErrorCode, int>{{ErrorCode::rank_left, 1}});
  CHECK(work_off(driver) > count / 64 / 2);
}

TEST_CASE("expire_data drops so many objects that others need not wait for long") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::uint64_t count = wire::expired_objects_max + 10;
  for (std::uint64_t number = 0; number < count; ++number) {
    driver.call(ranks[0], object(driver, 0, number));
    driver.acknowledge_all();
  }
  const auto expire = [&] {
    const auto reply =
        driver.reply(driver.call(ranks[0], wire::ExpireData{driver.epoch, Duration::zero()}));
    return wire::decode_body<wire::NumberReply>(reply->head)->number;
  };
  CHECK(expire() == wire::expired_objects_max);
  CHECK(expire() == 10);
  CHECK(driver.engine.counts().objects == 0);
}

TEST_CASE("expire_data looks at no more objects, whether they count or not") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::uint64_t count = wire::expired_objects_max + 10'000;
  for (std::uint64_t number = 0; number < count; ++number) {
    driver.call(ranks[0], object(driver, 0, number));
    driver.acknowledge_all();
  }
  driver.works_off = false;
  driver.call(ranks[1], wire::Leave{driver.epoch});
  driver.call(ranks[0], wire::ExpireData{driver.epoch, Duration::zero()});
  CHECK(driver.engine.work() <= wire::expired_objects_max + 10);
  work_off(driver);
}

TEST_CASE("many epochs that end at the same time do no more than one of them in the event") {
  GroupDriver driver;
  const core::ConnectionId rank = driver.connect();
  for (int number = 0; number < 20; ++number) {
    driver.form(std::vector<core::ConnectionId>{rank}, "g" + std::to_string(number));
    for (std::uint64_t tag = 0; tag < 500; ++tag) {
      driver.call(rank, wire::Send{driver.epoch, 0, tag, 0, 0, "v"});
      driver.acknowledge_all();
    }
  }
  driver.works_off = false;
  driver.apply(core::Goodbye{rank});
  CHECK(driver.engine.work() < 3 * driver.engine.options().work_per_event_max);
  CHECK(driver.engine.has_backlog());
  CHECK(driver.engine.counts().objects == 0);
  work_off(driver);
  CHECK(driver.engine.counts().streams == 0);
}

TEST_CASE("a unit that has gone shares nothing any more when what it left has ended in pieces") {
  core::Options options;
  options.memory_bytes_max = options.namespace_memory_bytes_max = 1'000'000;
  options.work_per_event_max = 10;
  GroupDriver driver(options);
  const core::ConnectionId stays = driver.connect("", wire::Role::client, "stays");
  const core::ConnectionId goes = driver.connect("", wire::Role::client, "goes");
  driver.form(std::vector<core::ConnectionId>{goes}, "g");
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    driver.call(goes, wire::Send{driver.epoch, 0, tag, 0, 0, "v"});
    driver.acknowledge_all();
  }
  driver.works_off = false;
  driver.apply(core::Goodbye{goes});
  driver.apply(core::Heard{stays});
  CHECK(driver.engine.counts().epochs == 1);
  driver.works_off = true;
  driver.apply(core::Heard{stays});
  driver.apply(core::Advance{});
  CHECK(driver.engine.counts().epochs == 0);
  CHECK_FALSE(driver.engine.memory().all.is_shared());
}
