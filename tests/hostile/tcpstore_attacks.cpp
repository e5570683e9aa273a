// Attacks at the port for programs that use TCPStore, whose protocol is spoken by hand.

#include <algorithm>
#include <string>

#include "base/little_endian.h"
#include "hostile/stage.h"

namespace muster::hostile {
namespace {

enum class Tcp : char {
  set = 1,
  get = 3,
  wait = 6,
  count_keys = 7,
  multi_set = 11,
  list_keys = 17
};

constexpr std::uint64_t value_bytes_max = 16 << 20;  // of a server's defaults
constexpr std::size_t part_bytes = 8 * 1024;

void put(std::string& out, std::uint64_t number) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(number));
  base::to_little_endian(number, out.data() + at);
}

void put(std::string& out, const std::string& bytes) {
  put(out, bytes.size());
  out += bytes;
}

std::string asked(Tcp what) { return {static_cast<char>(what)}; }

std::string asked(Tcp what, const std::string& key) {
  std::string out = asked(what);
  put(out, key);
  return out;
}

std::string set_request(const std::string& key, const std::string& value) {
  std::string out = asked(Tcp::set, key);
  put(out, value);
  return out;
}

std::string multi_set_request(std::uint64_t keys) {
  std::string out = asked(Tcp::multi_set);
  put(out, keys);
  for (std::uint64_t key = 0; key < keys; ++key) {
    put(out, "key-" + std::to_string(key));
    put(out, "value");
  }
  return out;
}

/// One that has said what newer clients say first.
Client& enter(Stage& stage, Sources& sources) {
  Client& client = stage.swarm.open(sources.next());
  stage.swarm.send(client, std::string("\0\xCE\xF7\x85\x3C", 5));
  return client;
}

/// Keeps so many bytes of `request` again and again on their way, and counts what comes back.
Figures pipeline(Stage& stage, const std::string& request, bool reads) {
  constexpr std::size_t on_the_way_bytes = 64 * 1024;
  std::string batch;
  while (batch.size() < 4096) batch += request;
  Sources sources = stage.sources();
  Swarm::Clients clients;
  for (std::uint64_t count = stage.number("connections", 10); count > 0; --count) {
    clients.push_back(&enter(stage, sources));
  }
  stage.swarm.turn();
  if (!reads)
    std::for_each(clients.begin(), clients.end(),
                  [&](Client* client) { stage.swarm.stop_reading(*client); });
  stage.ready();
  while (stage.goes_on()) {
    for (Client* const client : clients) {
      while (client->is_open() && client->unsent() < std::max(batch.size(), on_the_way_bytes)) {
        stage.swarm.send(*client, batch);
      }
      client->in.clear();
    }
    stage.swarm.turn();
  }
  return {{"received_bytes", stage.swarm.received_bytes()}};
}

}  // namespace

/// count  of connections that each send a piece of a value of 16 MiB and stop
Figures tcpstore_parts(Stage& stage) {
  Sources sources = stage.sources();
  std::string part = asked(Tcp::set, "key");
  put(part, value_bytes_max);
  part.append(part_bytes, 'x');
  stage.ready();
  for (std::uint64_t count = stage.number("count", 2000); count > 0; --count) {
    stage.swarm.send(enter(stage, sources), part);
  }
  stage.hold();
  return {{"ended", stage.swarm.ended_count()}};
}

/// at_once  so many connections in a loop that say something else than any client does
Figures tcpstore_garbage(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t at_once = stage.number("at_once", 64);
  stage.ready();
  while (stage.goes_on()) {
    Swarm::Clients clients;
    for (std::uint64_t index = 0; index < at_once; ++index) {
      clients.push_back(&enter(stage, sources));
      stage.swarm.send(*clients.back(), std::string(64, static_cast<char>(19 + index % 200)));
    }
    stage.swarm.wait_until_closed(clients);
    stage.swarm.close(clients);
  }
  return {{"ended", stage.swarm.ended_count()}};
}

/// connections, keys  each sets so many keys by one request, again and again
Figures tcpstore_multi_set(Stage& stage) {
  const std::string request = multi_set_request(stage.number("keys", 16'384));
  return pipeline(stage, request + asked(Tcp::count_keys), true);
}

/// connections, value_bytes  each gets a value again and again and never reads
Figures tcpstore_non_readers(Stage& stage) {
  Sources sources = stage.sources();
  const std::string value(stage.number("value_bytes", 30'000), 'v');
  stage.swarm.send(enter(stage, sources), set_request("key", value));
  stage.swarm.turn();
  return pipeline(stage, asked(Tcp::get, "key"), false);
}

/// connections, keys  each lists so many keys again and again
Figures tcpstore_lists(Stage& stage) {
  Sources sources = stage.sources();
  stage.swarm.send(enter(stage, sources), multi_set_request(stage.number("keys", 50'000)));
  stage.swarm.turn();
  return pipeline(stage, asked(Tcp::list_keys), true);
}

/// connections, each  waits for so many keys of its own by one request, and gives up
Figures tcpstore_waits(Stage& stage) {
  Sources sources = stage.sources();
  const std::uint64_t keys = stage.number("each", 1000);
  std::uint64_t connections = stage.number("connections", 64);
  stage.ready();
  while (stage.goes_on()) {
    Swarm::Clients clients;
    for (std::uint64_t index = 0; index < connections; ++index) {
      std::string request = asked(Tcp::wait);
      put(request, keys);
      for (std::uint64_t key = 0; key < keys; ++key) {
        put(request, "wait-" + std::to_string(index) + "-" + std::to_string(key));
      }
      clients.push_back(&enter(stage, sources));
      stage.swarm.send(*clients.back(), request);
    }
    for (int turns = 0; turns < 10 && stage.goes_on(); ++turns) stage.swarm.turn();
    stage.swarm.close(clients);
  }
  return {{"ended", stage.swarm.ended_count()}};
}

}  // namespace muster::hostile
