// Attacks by requests: those that cost the server much, and those that it must not carry out.

#include <array>
#include <cstddef>
#include <string>

#include "hostile/stage.h"
#include "wire/reply.h"

namespace muster::hostile {
namespace {

constexpr std::uint64_t waits_per_session = 500;
constexpr std::uint64_t requests_at_once = 1000;
constexpr std::size_t unsent_bytes_max = 64 * 1024;

/// What there is to tell of when operators ask.
void populate(Stage& stage, Sources& sources) {
  const auto clients = stage.swarm.enter(stage.number("sessions", 10'000), sources, stage.hello());
  const std::uint64_t groups_count = stage.number("groups", 1000);
  const std::uint64_t waits_count = stage.number("waits", 100'000);
  std::string name;
  for (std::uint64_t index = 0; index < groups_count; ++index) {
    name = "group" + std::to_string(index);
    stage.swarm.request(*clients[index % clients.size()], wire::Join{name, 0, 1, {}, false, {}});
  }
  for (std::uint64_t index = 0; index < waits_count; ++index) {
    Client& client = *clients[index / waits_per_session % clients.size()];
    name = "awaited" + std::to_string(index);
    stage.swarm.request(client, wire::Get{name});
  }
  for (Client* const client : clients) stage.swarm.request(*client, wire::Exists{{"awaited"}});
  stage.swarm.turn_until(
      [&] { return stage.swarm.replies(ErrorCode{}) >= clients.size() + groups_count; },
      std::chrono::seconds(60));
}

wire::RequestBody asked(const std::string& operation, std::uint64_t number) {
  static constexpr std::array<const char*, 6> mix = {"sessions", "waiters", "groups",
                                                     "status",   "list",    "inspect_group"};
  const std::string which = operation == "mix" ? mix[number % mix.size()] : operation;
  if (which == "sessions") return wire::Sessions{};
  if (which == "waiters") return wire::Waiters{};
  if (which == "groups") return wire::Groups{};
  if (which == "list") return wire::List{wire::ListKind::objects, "", 0, 0};
  if (which == "inspect_group") return wire::InspectGroup{"group1"};
  return wire::Status{};
}

Client& session_of(Stage& stage, Sources& sources, wire::Role role = wire::Role::client) {
  wire::ClientHello hello = stage.hello();
  hello.role = role;
  return *stage.swarm.enter(1, sources, hello).front();
}

/// What the counter of `old_ids` says.
std::int64_t counted(Stage& stage, Sources& sources) {
  std::int64_t number = 0;
  Client& reader = session_of(stage, sources);
  reader.on_reply = [&number](Client&, const wire::Frame& frame) {
    const auto value = wire::decode_body<wire::NumberReply>(frame.body);
    if (frame.header.code == 0 && value) number = value->number;
  };
  stage.swarm.ask(reader, 1, 1, [](std::size_t) -> wire::RequestBody {
    return wire::Add{"counter", 0};
  });
  reader.on_reply = {};
  return number;
}

}  // namespace

/// sessions, waits, groups  what there is to tell of
/// connections, operation   so many pipeline what operators ask, and read the replies
Figures flood(Stage& stage) {
  Sources sources = stage.sources();
  populate(stage, sources);
  const std::string operation = stage.text("operation", "mix");
  const auto clients = stage.swarm.enter(stage.number("connections", 10), sources, stage.hello());
  stage.ready();
  const std::uint64_t before = stage.swarm.replies(ErrorCode{});
  std::uint64_t number = 0;
  while (stage.goes_on()) {
    for (Client* const client : clients) {
      while (client->is_welcome() && client->in_flight < requests_at_once &&
             client->unsent() < unsent_bytes_max) {
        stage.swarm.request(*client, asked(operation, number++));
      }
    }
    stage.swarm.turn();
  }
  return {{"answered", stage.swarm.replies(ErrorCode{}) - before},
          {"received_bytes", stage.swarm.received_bytes()}};
}

/// Requests with ids that the session has used and acknowledged, and with such as it has passed by.
Figures old_ids(Stage& stage) {
  Sources sources = stage.sources();
  constexpr std::uint64_t rounds = 10;
  stage.ready();
  const auto add = [](std::size_t) -> wire::RequestBody { return wire::Add{"counter", 1}; };
  std::int64_t expected = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Client& repeating = session_of(stage, sources);
    stage.swarm.ask(repeating, 3, 1, add);
    repeating.last_id = 1;  // is told to be acknowledged by the request with this id
    stage.swarm.ask(repeating, 1, 1, add);
    Client& passing = session_of(stage, sources);
    passing.last_id = 1000;
    stage.swarm.ask(passing, 1, 1, add);
    passing.last_id = 500;
    stage.swarm.ask(passing, 1, 1, add);
    expected += 4;
  }
  const std::int64_t number = counted(stage, sources);
  stage.hold();
  return {{"expected", expected}, {"executed", number}};
}

/// count  of requests whose replies the server keeps, of which none is acknowledged
Figures unacknowledged(Stage& stage) {
  Sources sources = stage.sources();
  Client& client = session_of(stage, sources);
  stage.ready();
  client.on_reply = [](Client& told, const wire::Frame&) { told.received.clear(); };
  stage.swarm.ask(client, stage.number("count", 1000), 1, [](std::size_t) -> wire::RequestBody {
    return wire::Add{"kept", 1};
  });
  stage.hold();
  return {{"kept", stage.swarm.replies(ErrorCode{})},
          {"refused", stage.swarm.replies(ErrorCode::resource_exhausted)}};
}

/// An observer that changes groups, or wants processes to be dead.
Figures observer(Stage& stage) {
  Sources sources = stage.sources();
  Client& client = session_of(stage, sources, wire::Role::observer);
  stage.ready();
  constexpr std::size_t kinds = 5;
  const std::uint64_t count = stage.number("count", 100);
  const auto forbidden = [](std::size_t index) -> wire::RequestBody {
    switch (index % kinds) {
      case 0: return wire::ReportDead{{}, "an observer says so"};
      case 1: return wire::Join{"bystanders", 0, 4, {}, true, {}};
      case 2: return wire::Leave{1};
      case 3: return wire::Send{1, 0, 0, 0, 0, "value"};
      default: return wire::Regroup{1, 1, 1, 0, 0};
    }
  };
  stage.swarm.ask(client, count, 16, forbidden);
  stage.hold();
  return {{"count", count}, {"denied", stage.swarm.replies(ErrorCode::permission_denied)}};
}

/// Names that would be seen as lines of their own, as colours, or from right to left.
Figures names(Stage& stage) {
  Sources sources = stage.sources();
  stage.ready();
  for (const char* const name : {"a\n2026-01-01T00:00:00.000Z error forged", "b\x1b[31mred",
                                 "c\xc2\x9b"
                                 "31m",
                                 "d\xe2\x80\xae"
                                 "left",
                                 "e\xe2\x80\xa8"
                                 "line",
                                 "f\xe2\x81\xa6"
                                 "isolate",
                                 "g\xff\xfe"}) {
    wire::ClientHello hello = stage.hello();
    hello.process.host = name;
    hello.process.label = name;
    hello.name_space = name;
    const auto clients = stage.swarm.enter(1, sources, hello);
    stage.swarm.send(*clients.front(), std::string(64, '\xff'));
    stage.swarm.wait_until_closed(clients);
  }
  stage.hold();
  return Figures::object();
}

}  // namespace muster::hostile
