// Attacks that take memory and places, and keep them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/stage.h"
#include "wire/reply.h"

namespace muster::hostile {
namespace {

wire::Set set_of(std::string_view key, std::string_view value) {
  return {key, value, {}, false, false};
}

Client& begin_reader(Stage& stage, Sources& sources) {
  constexpr int small_buffer_bytes = 16 * 1024;
  Client& client = stage.swarm.open(sources.next(), small_buffer_bytes);
  stage.swarm.say_hello(client, stage.hello());
  return client;
}

/// Each waits for a key many times; then it is set, again and again.
Figures await_unread(Stage& stage, const Swarm::Clients& clients, Client& owner,
                     std::string_view value) {
  const std::uint64_t each = stage.number("waits", 50);
  stage.swarm.turn_until(
      [&] {
        return std::all_of(clients.begin(), clients.end(), [](const Client* client) {
          return !client->is_open() || client->is_welcome();
        });
      },
      std::chrono::seconds(60));
  for (Client* const client : clients) {
    stage.swarm.stop_reading(*client);
    for (std::uint64_t count = 0; count < each; ++count) {
      stage.swarm.request(*client, wire::Get{"awaited"});
    }
  }
  stage.ready();
  while (stage.goes_on()) {
    stage.swarm.ask(owner, 1, 1,
                    [&](std::size_t) -> wire::RequestBody { return set_of("awaited", value); });
    stage.swarm.ask(owner, 1, 1,
                    [](std::size_t) -> wire::RequestBody { return wire::Remove{{"awaited"}}; });
    for (Client* const client : clients) stage.swarm.request(*client, wire::Get{"awaited"});
  }
  return {{"connections", clients.size()}};
}

wire::RequestBody read_of(const std::string& operation) {
  if (operation == "list") return wire::List{wire::ListKind::keys, "", 0, 0};
  if (operation == "multi_get") return wire::MultiGet{{"key1", "key2", "key3", "key4"}};
  if (operation == "get") return wire::Get{"key1"};
  if (operation == "sessions") return wire::Sessions{};
  return wire::Status{};
}

}  // namespace

/// count  of namespaces, in each of which a session leaves one key
Figures name_spaces(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 4096);
  stage.ready();
  std::uint64_t made = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    wire::ClientHello hello = stage.hello();
    hello.name_space = "hostile" + std::to_string(index);
    const Swarm::Clients clients = stage.swarm.enter(1, sources, hello);
    if (clients.front()->is_welcome()) {
      stage.swarm.ask(*clients.front(), 1, 1,
                      [](std::size_t) -> wire::RequestBody { return set_of("key", "value"); });
      stage.swarm.say_goodbye(*clients.front());
      stage.swarm.wait_until_closed(clients);
    }
    made = stage.swarm.replies(ErrorCode{});
    if (clients.front()->refused == ErrorCode::busy) ++refused;
    stage.swarm.close(clients);
  }
  stage.hold();
  return {{"made", made}, {"busy", refused}};
}

/// sessions, each  so many sessions that each hold as many groups of one rank as they get
Figures groups(Stage& stage) {
  Sources sources = stage.sources();
  stage.ready();
  const std::uint64_t each = stage.number("each", 1000);
  const auto clients = stage.swarm.enter(stage.number("sessions", 5), sources, stage.hello());
  for (Client* const client : clients) {
    std::string name;
    stage.swarm.ask(*client, each, 16, [&](std::size_t index) -> wire::RequestBody {
      name = std::to_string(client->session_id) + "-" + std::to_string(index);
      return wire::Join{name, 0, 1, {}, false, {}};
    });
  }
  const std::uint64_t made = stage.swarm.replies(ErrorCode{});
  stage.hold();
  return {{"made", made}};
}

/// sessions, waits  as many sessions as one address gets, each of which waits for so many keys
/// groups, values, value_bytes  that are made and set by one of them, until they are refused
Figures leak(Stage& stage) {
  Sources sources = stage.sources();
  const auto clients = stage.swarm.enter(stage.number("sessions", 4200), sources, stage.hello());
  Client& one = *clients.front();
  std::string name;
  stage.swarm.ask(one, stage.number("groups", 100), 16, [&](std::size_t index) {
    name = "leak" + std::to_string(index);
    return wire::RequestBody(wire::Join{name, 0, 1, {}, false, {}});
  });
  const std::uint64_t groups = stage.swarm.replies(ErrorCode{});
  const std::string value(stage.number("value_bytes", 64 * 1024), 'x');
  const auto fill = [&](std::size_t count, std::string_view bytes) {
    stage.swarm.ask(one, count, 4, [&](std::size_t index) {
      name = "leak" + std::to_string(bytes.size()) + "-" + std::to_string(index);
      return wire::RequestBody(set_of(name, bytes));
    });
  };
  fill(stage.number("values", 300), value);
  fill(2000, std::string_view(value).substr(0, 64));  // what the long ones have left
  std::uint64_t welcome = 0;
  for (Client* const client : clients) {
    if (!client->is_welcome()) continue;
    ++welcome;
    for (std::uint64_t count = stage.number("waits", 1); count > 0; --count) {
      stage.swarm.request(*client, wire::Get{"never"});
    }
  }
  stage.ready();
  stage.hold();
  return {{"welcome", welcome}, {"refused", clients.size() - welcome}, {"groups", groups}};
}

/// value_bytes  of values that are set until the server refuses them, and then on and on
Figures fill(Stage& stage) {
  Sources sources = stage.sources();
  const std::string value(stage.number("value_bytes", 64 * 1024), 'x');
  const auto clients = stage.swarm.enter(stage.number("sessions", 4), sources, stage.hello());
  stage.ready();
  std::uint64_t asked = 0;
  std::string key;
  const auto set = [&](Client& client) {
    key = "big" + std::to_string(asked++);
    stage.swarm.request(client, set_of(key, value));
  };
  const auto ask_all = [&] {
    for (Client* const client : clients) {
      while (client->is_welcome() && client->in_flight < 4) set(*client);
    }
  };
  while (stage.goes_on()) {
    ask_all();
    stage.swarm.turn();
  }
  return {{"asked", asked}, {"taken", stage.swarm.replies(ErrorCode{})}};
}

/// sessions, each, key_bytes  so many sessions that each wait for so many keys, which never come
Figures parked(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t each = stage.number("each", 1000);
  const std::string filler(stage.number("key_bytes", 1000), 'x');
  const auto clients = stage.swarm.enter(stage.number("sessions", 100), sources, stage.hello());
  stage.ready();
  std::string key;
  for (std::uint64_t count = 0; count < each; ++count) {
    for (Client* const client : clients) {
      key = std::to_string(client->session_id) + "-" + std::to_string(count) + filler;
      stage.swarm.request(*client, wire::Get{std::string_view(key).substr(0, filler.size())});
    }
    stage.swarm.turn(std::chrono::milliseconds(0));
  }
  stage.hold();
  std::uint64_t waiting = 0;
  for (const Client* const client : clients) waiting += client->in_flight;
  return {{"waiting", waiting}};
}

/// value_bytes, groups  of objects that are sent in so many groups of two until the server refuses
///                      them, and then on and on, and that nobody receives
Figures objects(Stage& stage) {
  Sources sources = stage.sources();
  const std::string value(stage.number("value_bytes", 10'000), 'x');
  struct Sender {
    Client* client = nullptr;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
  };
  std::vector<Sender> senders(stage.number("groups", 4));
  for (std::size_t index = 0; index < senders.size(); ++index) {
    const std::string group = "objects" + std::to_string(index);
    const auto clients = stage.swarm.enter(2, sources, stage.hello());
    Sender& sender = senders[index];
    sender.client = clients.front();
    sender.client->on_reply = [&sender](Client&, const wire::Frame& frame) {
      const auto formed = wire::decode_body<wire::FormedReply>(frame.body);
      if (frame.header.code == 0 && formed && sender.epoch == 0) sender.epoch = formed->epoch;
      // What was refused is sent again under its number, as a client that goes on would.
      if (frame.header.code != 0) --sender.sequence;
    };
    stage.swarm.request(*clients.back(), wire::Join{group, 1, 2, {}, false, {}});
    stage.swarm.ask(*sender.client, 1, 1, [&](std::size_t) -> wire::RequestBody {
      return wire::Join{group, 0, 2, {}, false, {}};
    });
  }
  const std::uint64_t before = stage.swarm.replies(ErrorCode{});
  stage.ready();
  while (stage.goes_on()) {
    for (Sender& sender : senders) {
      if (!sender.client->is_welcome() || sender.client->in_flight > 0) continue;
      stage.swarm.request(*sender.client,
                          wire::Send{sender.epoch, 1, 0, sender.sequence++, 0, value});
    }
    stage.swarm.turn();
  }
  return {{"taken", stage.swarm.replies(ErrorCode{}) - before}};
}

/// connections, operation  so many that ask without end and read nothing; one that the server lets
///                         go comes again
Figures non_readers(Stage& stage) {
  Sources sources = stage.sources();
  constexpr std::size_t unsent_max = 64 * 1024;
  constexpr std::size_t keys_count = 1000;
  const std::string value(stage.number("value_bytes", 1000), 'x');
  const std::string operation = stage.text("operation", "list");
  const auto owner = stage.swarm.enter(1, sources, stage.hello());
  std::string name;
  stage.swarm.ask(*owner.front(), keys_count, 32, [&](std::size_t index) -> wire::RequestBody {
    name = "key" + std::to_string(index);
    return set_of(name, value);
  });
  Swarm::Clients clients;
  for (std::uint64_t count = stage.number("connections", 200); count > 0; --count) {
    clients.push_back(&begin_reader(stage, sources));
  }
  if (operation == "awaited") return await_unread(stage, clients, *owner.front(), value);
  stage.ready();
  std::uint64_t let_go = 0;
  while (stage.goes_on()) {
    for (Client*& client : clients) {
      if (!client->is_open()) {
        ++let_go;
        stage.swarm.close(*client);
        client = &begin_reader(stage, sources);
      }
      if (!client->is_welcome()) continue;
      if (client->reads) stage.swarm.stop_reading(*client);
      while (client->is_open() && client->unsent() < unsent_max) {
        stage.swarm.request(*client, read_of(operation));
      }
    }
    stage.swarm.turn();
  }
  return {{"connections", clients.size()}, {"let_go", let_go}};
}

}  // namespace muster::hostile
