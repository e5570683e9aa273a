// The defects of earlier systems of this kind, of the store and its addresses: 8 to 10. Defect 11,
// sizes that hostile bytes declare, is in tests/api/codec_cereal_test.cpp.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "support/ranks.h"

namespace muster::test {
namespace {

bool can_connect(const char* address, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

TEST_CASE("defect 8: a get that waits blocks no other call of the same store") {
  auto server = start_server();
  auto store = connect(server);
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    CHECK(must(store.get("late")) == "here");
    got = true;
  });
  for (int i = 0; i < 100; ++i) must(store.set("other", std::to_string(i)));
  CHECK(!got);
  must(store.set("late", "here"));
  waiter.join();
}

TEST_CASE("defect 9: a server on 127.0.0.1 listens nowhere else") {
  auto server = start_disturbed_server();
  CHECK(can_connect("127.0.0.1", server.port()));
  CHECK(!can_connect("127.0.0.2", server.port()));
}

TEST_CASE("defect 10: a store reconnects to a restarted server and says that it was restarted") {
  auto server = std::make_optional(start_disturbed_server());
  const std::string address = server->addresses().front();
  const auto old_incarnation = server->incarnation();
  auto store = connect(address);
  must(store.set("key", "old"));
  server.reset();
  CHECK_FALSE(store.set("key", "lost", {}, 200ms).has_value());

  ServerOptions same_port;
  same_port.listen = {address};
  server = start_disturbed_server(same_port);
  await([&] {
    const auto value = store.get("key", 0s);
    REQUIRE_FALSE(value.has_value());  // never a value of the old server
    return value.error().code == ErrorCode::server_restarted;
  });
  const Error error = must_fail(store.get("key", 0s));
  CHECK(error.expected == old_incarnation);
  CHECK(error.actual == server->incarnation());
  must(store.reopen(10s));
  CHECK(must_fail(store.get("key", 0s)).code == ErrorCode::not_found);
  must(store.set("key", "new"));
}

}  // namespace muster::test
