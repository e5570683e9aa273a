// Attacks by a single event that concerns very many: it must be decided at once, and be done in
// pieces.

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "hostile/stage.h"
#include "wire/reply.h"

namespace muster::hostile {
namespace {

constexpr std::chrono::seconds patience_for_all{120};
constexpr std::uint64_t waits_of_session = 1000;

void expect(bool holds, const char* otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}

}  // namespace

/// count  of keys that are bound to a session, which ends
Figures bound_keys(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 1'000'000);
  const auto owner = stage.swarm.enter(1, sources, stage.hello());
  const auto other = stage.swarm.enter(1, sources, stage.hello());
  std::string key;
  for (std::uint64_t done = 0; done < count; done += 10'000) {
    stage.swarm.ask(*owner.front(), std::min<std::uint64_t>(10'000, count - done), 48,
                    [&](std::size_t index) -> wire::RequestBody {
                      key = "bound" + std::to_string(done + index);
                      return wire::Set{key, "x", {}, false, true};
                    });
  }
  expect(stage.swarm.replies(ErrorCode{}) == count, "not every key was taken");
  stage.ready();
  stage.swarm.say_goodbye(*owner.front());
  stage.swarm.wait_until_closed(owner);
  // To whoever looks they are absent as soon as it is over.
  stage.swarm.ask(
      *other.front(), 1, 1, [&](std::size_t) -> wire::RequestBody { return wire::Get{key}; },
      Duration(0));
  const std::uint64_t absent = stage.swarm.replies(ErrorCode::not_found);
  stage.hold();
  return {{"count", count}, {"absent_at_once", absent}};
}

/// count  of requests that wait for one key, which is set
Figures waiters(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 300'000);
  const std::uint64_t sessions = (count + waits_of_session - 1) / waits_of_session;
  const auto clients = stage.swarm.enter(sessions, sources, stage.hello());
  const auto setter = stage.swarm.enter(1, sources, stage.hello());
  for (std::uint64_t index = 0; index < count; ++index) {
    stage.swarm.request(*clients[index % sessions], wire::Get{"awaited"});
  }
  // What was asked before is parked when this is answered.
  for (Client* const client : clients) stage.swarm.request(*client, wire::Exists{{"awaited"}});
  expect(stage.swarm.turn_until([&] { return stage.swarm.replies(ErrorCode{}) == sessions; },
                                patience_for_all),
         "not all wait");
  stage.ready();
  const auto began = Swarm::Time::now();
  stage.swarm.request(*setter.front(), wire::Set{"awaited", "value", {}, false, false});
  expect(stage.swarm.turn_until(
             [&] { return stage.swarm.replies(ErrorCode{}) == sessions + 1 + count; },
             patience_for_all),
         "not all were told");
  const std::chrono::duration<double> took = Swarm::Time::now() - began;
  stage.hold();
  return {{"count", count}, {"told_s", took.count()}};
}

/// All of them join one group, as its first replies.
///
/// returns  its epoch
std::uint64_t form_group(Stage& stage, const std::vector<Client*>& clients) {
  std::uint64_t epoch = 0;
  const auto world_size = static_cast<std::uint32_t>(clients.size());
  std::uint32_t rank = 0;
  for (Client* const client : clients) {
    client->on_reply = [&epoch](Client&, const wire::Frame& frame) {
      const auto formed = wire::decode_body<wire::FormedReply>(frame.body);
      if (frame.header.code == 0 && formed) epoch = formed->epoch;
    };
    stage.swarm.request(*client, wire::Join{"large", rank++, world_size, {}, false, {}});
  }
  expect(stage.swarm.turn_until([&] { return stage.swarm.replies(ErrorCode{}) == clients.size(); },
                                patience_for_all),
         "the group did not form");
  for (Client* const client : clients) client->on_reply = {};
  return epoch;
}

/// count  of ranks of a group that forms, and breaks because one of them ends
Figures one_group(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 10'000);
  const auto clients = stage.swarm.enter(count, sources, stage.hello());
  stage.ready();
  const std::uint64_t epoch = form_group(stage, clients);
  // Before it breaks, all wait for the one that will go.
  for (Client* const client : clients) {
    if (client == clients.front()) continue;
    wire::CollectiveCall barrier;
    barrier.epoch = epoch;
    barrier.round = 1;
    stage.swarm.request(*client, barrier);
  }
  for (Client* const client : clients) stage.swarm.request(*client, wire::Exists{{"key"}});
  expect(stage.swarm.turn_until([&] { return stage.swarm.replies(ErrorCode{}) == 2 * count; },
                                patience_for_all),
         "not all wait");
  stage.swarm.say_goodbye(*clients.front());
  const bool are_told = stage.swarm.turn_until(
      [&] { return stage.swarm.replies(ErrorCode::rank_left) == count - 1; }, patience_for_all);
  stage.hold();
  return {{"count", count}, {"formed", count}, {"all_told", are_told}};
}

/// count  of objects that nobody has received when their group ends
Figures ended_group(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 1'000'000);
  const auto ranks = stage.swarm.enter(2, sources, stage.hello());
  const auto other = stage.swarm.enter(1, sources, stage.hello());
  const std::uint64_t epoch = form_group(stage, ranks);
  for (std::uint64_t done = 0; done < count; done += 10'000) {
    stage.swarm.ask(*ranks.front(), std::min<std::uint64_t>(10'000, count - done), 48,
                    [&](std::size_t index) -> wire::RequestBody {
                      return wire::Send{epoch, 1, 0, done + index, 0, "object"};
                    });
  }
  expect(stage.swarm.replies(ErrorCode{}) == 2 + count, "not every object was taken");
  stage.ready();
  for (Client* const rank : ranks) stage.swarm.say_goodbye(*rank);
  stage.swarm.wait_until_closed(ranks);
  // To whoever looks they are gone as soon as it is over.
  std::size_t listed_count = 1;
  other.front()->on_reply = [&](Client&, const wire::Frame& frame) {
    const auto page = wire::decode_body<wire::ListReply>(frame.body);
    if (frame.header.code == 0 && page) listed_count = page->entries.size();
  };
  stage.swarm.ask(*other.front(), 1, 1, [&](std::size_t) -> wire::RequestBody {
    return wire::List{wire::ListKind::objects, "group/large/", 0, 0};  // others have theirs
  });
  stage.hold();
  return {{"count", count}, {"absent_at_once", listed_count == 0 ? 1 : 0}};
}

/// count, value_bytes  of values that one request removes
Figures removed_values(Stage& stage) {
  Sources sources = stage.sources();
  const std::string value(stage.number("value_bytes", 16 << 20), 'x');
  const std::uint64_t count = stage.number("count", 16);
  const auto client = stage.swarm.enter(1, sources, stage.hello());
  std::vector<std::string> keys;
  for (std::uint64_t number = 0; number < count; ++number) {
    keys.push_back("long" + std::to_string(number));
  }
  stage.swarm.ask(*client.front(), count, 1, [&](std::size_t index) -> wire::RequestBody {
    return wire::Set{keys[index], value, {}, false, false};
  });
  expect(stage.swarm.replies(ErrorCode{}) == count, "not every value was taken");
  stage.ready();
  stage.swarm.ask(*client.front(), 1, 1, [&](std::size_t) -> wire::RequestBody {
    return wire::Remove{{keys.begin(), keys.end()}};
  });
  const bool are_told = stage.swarm.replies(ErrorCode{}) == count + 1;
  stage.hold();
  return {{"count", count}, {"all_told", are_told}};
}

/// value_bytes, readers  of one value that is set, and that so many ask for at once
Figures large_value(Stage& stage) {
  Sources sources = stage.sources();
  const std::string value(stage.number("value_bytes", 64 << 20), 'x');
  const std::uint64_t count = stage.number("readers", 4);
  const auto clients = stage.swarm.enter(count, sources, stage.hello());
  stage.ready();
  stage.swarm.ask(*clients.front(), 1, 1, [&](std::size_t) -> wire::RequestBody {
    return wire::Set{"large", value, {}, false, false};
  });
  for (Client* const client : clients) stage.swarm.request(*client, wire::Get{"large"});
  const bool are_told = stage.swarm.turn_until(
      [&] { return stage.swarm.replies(ErrorCode{}) == 1 + count; }, patience_for_all);
  stage.hold();
  return {{"received_bytes", stage.swarm.received_bytes()}, {"all_told", are_told}};
}

/// ranks, value_bytes  of an all_gather: its reply has `ranks` x `value_bytes`
Figures one_round(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("ranks", 16);
  const std::string value(stage.number("value_bytes", 16 << 20), 'x');
  const auto clients = stage.swarm.enter(count, sources, stage.hello());
  const std::uint64_t epoch = form_group(stage, clients);
  stage.ready();
  for (Client* const client : clients) {
    wire::CollectiveCall all_gather;
    all_gather.epoch = epoch;
    all_gather.round = 1;
    all_gather.collective = wire::Collective::all_gather;
    all_gather.values = {value};
    stage.swarm.request(*client, all_gather);
  }
  const bool are_told = stage.swarm.turn_until(
      [&] { return stage.swarm.replies(ErrorCode{}) == 2 * count; }, patience_for_all);
  stage.hold();
  return {{"bytes", count * value.size()},
          {"received_bytes", stage.swarm.received_bytes()},
          {"all_told", are_told}};
}

}  // namespace muster::hostile
