#include <netdb.h>

#include <atomic>

#include <doctest/doctest.h>

#include "e2e/tcpstore/client.h"
#include "support/allocations.h"
#include "support/await.h"
#include "support/machine.h"
#include "support/server.h"

// What clients of TCPStore leave behind, and that nobody is looked up by name, in a server of this
// process.

namespace {

std::atomic<int> look_ups{0};

}  // namespace

// In place of those of the C library, for all of this program.
extern "C" int getnameinfo(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int) {
  ++look_ups;
  return EAI_AGAIN;
}
extern "C" hostent* gethostbyaddr(const void*, socklen_t, int) {
  ++look_ups;
  return nullptr;
}

namespace muster::test::tcpstore {
namespace {

struct Host {
  Host() : server(start_disturbed_server(with_port())) {}

  static ServerOptions with_port() {
    ServerOptions options;
    options.tcpstore.emplace_back();
    return options;
  }
  std::string tcpstore() const {
    return "127.0.0.1:" + std::to_string(server.tcpstore_ports().front());
  }

  Server server;
};

TEST_CASE("nobody who connects is looked up by name") {
  const Host host;
  Client client(host.tcpstore());
  client.flush();
  CHECK(look_ups == 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  char name[8];
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&any), sizeof any, name, sizeof name, nullptr, 0,
                NI_NUMERICHOST);
  CHECK(look_ups == 1);  // it would be seen
}

TEST_CASE("a connection that is over leaves no memory, whatever it was in the midst of") {
  const Host host;
  Client client(host.tcpstore());
  const std::size_t before_count = descriptor_count();
  const auto connect_many = [&](int count) {
    for (; count > 0; --count) {
      Client other(host.tcpstore());
      other.send(wait({"/never"}));
      const std::string begun = multi_set({{"/a", std::string(5000, 'x')}, {"/b", ""}});
      other.send(std::string_view(begun).substr(0, 4500));
    }
    await([&] { return descriptor_count() == before_count; });
    client.flush();
  };
  connect_many(500);  // containers have grown
  const std::int64_t before_bytes = live_bytes_of_process();
  connect_many(5000);
  const std::int64_t more_bytes = live_bytes_of_process() - before_bytes;
  CHECK(more_bytes < 5000 * 8);
  MESSAGE("5,000 connections leave ", more_bytes, " bytes");
}

TEST_CASE("a key that is deleted leaves no memory, nor does a wait that was for it") {
  const Host host;
  Client client(host.tcpstore());
  const auto set_and_delete = [&](int begin, int count) {
    for (int index = begin; index < begin + count; ++index) {
      const std::string key = "/key/" + std::to_string(index);
      client.ask(wait({key}) + set(key, std::string(100, 'v')) + push(key, "item") + pop(key) +
                     delete_key(key),
                 1 + 8 + 8 + 4 + 8);
    }
    client.flush();
  };
  set_and_delete(0, 2000);
  const std::int64_t before_bytes = live_bytes_of_process();
  set_and_delete(2000, 20'000);
  const std::int64_t more_bytes = live_bytes_of_process() - before_bytes;
  CHECK(more_bytes < 20'000 * 4);
  CHECK(client.ask(count_keys, 8) == number(0));
  MESSAGE("20,000 keys leave ", more_bytes, " bytes");
}

}  // namespace
}  // namespace muster::test::tcpstore
