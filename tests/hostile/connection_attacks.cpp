// Attacks by connections and sessions.

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "hostile/stage.h"

namespace muster::hostile {
namespace {

constexpr std::chrono::seconds all_limit{60};

std::string part_of_hello(std::size_t bytes) {
  std::string hello;
  wire::append_client_hello(hello, {});
  return hello.substr(0, bytes);
}

std::ptrdiff_t count_welcome(const Swarm::Clients& clients) {
  return std::count_if(clients.begin(), clients.end(),
                       [](const Client* client) { return client->is_welcome(); });
}

/// count, bytes  so many connections that send so much of a hello and stop; each that the server
///               ends is opened again
Figures begin_hellos(Stage& stage, Sources& sources, const std::string& part) {
  Swarm::Clients clients;
  const auto open = [&] {
    Client& client = stage.swarm.open(sources.next());
    stage.swarm.send(client, part);
    return &client;
  };
  const std::uint64_t count = stage.number("count", 2000);
  for (std::uint64_t index = 0; index < count; ++index) clients.push_back(open());
  stage.swarm.turn_until(
      [&] {
        return std::all_of(clients.begin(), clients.end(), [](const Client* client) {
          return client->state != Client::State::connecting;
        });
      },
      all_limit);
  stage.ready();
  std::uint64_t reopened = 0;
  while (stage.goes_on()) {
    stage.swarm.turn();
    for (Client*& client : clients) {
      if (client->is_open()) continue;
      stage.swarm.close(*client);
      client = open();
      ++reopened;
    }
  }
  return {{"reopened", reopened}};
}

}  // namespace

Figures half_hellos(Stage& stage) {
  Sources sources = stage.sources();
  return begin_hellos(stage, sources, part_of_hello(stage.number("bytes", 511)));
}

/// count  of connections that are all begun at once; their hellos are sent when all stand
Figures newcomers(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 16'000);
  stage.ready();
  const auto began = Swarm::Time::now();
  Swarm::Clients clients;
  for (std::uint64_t index = 0; index < count; ++index) {
    clients.push_back(&stage.swarm.open(sources.next()));
  }
  const auto are_past = [&](auto is_past) {
    return stage.swarm.turn_until(
        [&] { return std::all_of(clients.begin(), clients.end(), is_past); }, all_limit);
  };
  are_past([](const Client* client) { return client->state != Client::State::connecting; });
  const std::chrono::duration<double> connected = Swarm::Time::now() - began;
  std::uint64_t sent_again = 0;
  for (Client* const client : clients) {
    sent_again += client->retransmitted;
    stage.swarm.say_hello(*client, stage.hello());
  }
  are_past([](const Client* client) { return !client->is_open() || client->is_welcome(); });
  const std::chrono::duration<double> welcomed = Swarm::Time::now() - began;
  const std::ptrdiff_t welcome = count_welcome(clients);
  stage.hold();
  return {{"count", count},
          {"welcome", welcome},
          {"syns_sent_again", sent_again},
          {"connected_s", connected.count()},
          {"welcomed_s", welcomed.count()}};
}

/// at_once   so many connections in a loop: hello, `requests` sets, garbage, until it is closed
Figures garbage(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t at_once = stage.number("at_once", 64);
  const std::uint64_t requests = stage.number("requests", 0);
  stage.ready();
  std::uint64_t welcome = 0;
  std::uint64_t refused = 0;
  while (stage.goes_on()) {
    const Swarm::Clients clients = stage.swarm.enter(at_once, sources, stage.hello());
    welcome += static_cast<std::uint64_t>(count_welcome(clients));
    refused += at_once - static_cast<std::uint64_t>(count_welcome(clients));
    for (Client* const client : clients) {
      for (std::uint64_t index = 0; index < requests; ++index) {
        stage.swarm.request(*client, wire::Exists{{"key"}});
      }
      stage.swarm.send(*client, std::string(64, '\xff'));
    }
    stage.swarm.wait_until_closed(clients);
    stage.swarm.close(clients);
  }
  return {{"welcome", welcome}, {"refused", refused}};
}

/// at_once  so many sessions in a loop, that begin, and end by a goodbye
Figures begin_and_end(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t at_once = stage.number("at_once", 64);
  stage.ready();
  std::uint64_t welcome = 0;
  while (stage.goes_on()) {
    const Swarm::Clients clients = stage.swarm.enter(at_once, sources, stage.hello());
    welcome += static_cast<std::uint64_t>(count_welcome(clients));
    for (Client* const client : clients) {
      stage.swarm.request(*client, wire::Exists{{"key"}});
      stage.swarm.say_goodbye(*client);
    }
    stage.swarm.wait_until_closed(clients);
    stage.swarm.close(clients);
  }
  return {{"welcome", welcome}};
}

/// count  of connections that write a request behind their hello before they have read anything,
///        half of them behind an echo that they guess
Figures blind_writes(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t count = stage.number("count", 200);
  std::string hello;
  wire::append_client_hello(hello, stage.hello());
  wire::Request set;
  set.id = 1;
  set.timeout = std::chrono::seconds(1);
  set.body = wire::Set{"blind", "value", {}, false, false};
  std::string request;
  wire::append_request(request, set);
  std::string echo;
  wire::append_echo(echo, {});
  stage.ready();
  Swarm::Clients clients;
  for (std::uint64_t index = 0; index < count; ++index) {
    clients.push_back(&stage.swarm.open(sources.next()));
    stage.swarm.send(*clients.back(), hello + (index % 2 == 0 ? echo : "") + request);
  }
  stage.swarm.wait_until_closed(clients);
  const Swarm::Clients honest = stage.swarm.enter(1, sources, stage.hello());
  stage.swarm.ask(
      *honest.front(), 1, 1, [](std::size_t) -> wire::RequestBody { return wire::Get{"blind"}; },
      Duration(0));
  const std::uint64_t found = stage.swarm.replies(ErrorCode{});
  stage.hold();
  return {{"count", count}, {"executed", found}};
}

}  // namespace muster::hostile
