#include <unistd.h>

#include <future>
#include <limits>

#include "e2e/messages/documented.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"
#include "support/raw_client.h"
#include "support/stranger.h"

// Errors of the store, the session and the server have the fields that docs/errors.md says.

namespace muster::test {
namespace {

Error connect_error(const std::string& address, Duration timeout = 300ms) {
  return must_fail(Store::connect(address, {}, timeout));
}

TEST_CASE("errors of keys have the documented fields") {
  auto server = start_server();
  auto store = connect(server);
  check(must_fail(store.set("", "v")), ErrorCode::invalid_argument);
  check(must_fail(store.set(std::string(2000, 'k'), "")), ErrorCode::too_large);
  must(store.set("k", "text"));
  check(must_fail(store.add("k", 1)), ErrorCode::not_a_number);
  must(store.set("n", std::to_string(std::numeric_limits<std::int64_t>::max())));
  check(must_fail(store.add("n", 1)), ErrorCode::out_of_range);
  check(must_fail(store.get("none", 0s)), ErrorCode::not_found);
  check(must_fail(store.get("none", 20ms)), ErrorCode::timed_out);
}

TEST_CASE("an observer that wants to take part in a group is told what to do, and nothing else") {
  auto server = start_server();
  StoreOptions options;
  options.role = Role::observer;
  auto store = connect(server, options);
  const Error error = must_fail(StatelessProcessGroup::create(store, "g", 0, 1));
  check(error, ErrorCode::permission_denied);
  CHECK(error.message().find("connect as a client") != std::string::npos);
  CHECK(error.message().find("loopback") == std::string::npos);
}

TEST_CASE("errors of namespaces have the documented fields, and say what to do about them") {
  auto server = start_server();
  StoreOptions options;
  options.role = Role::supervisor;
  auto supervisor = connect(server, options);
  options.role = Role::client;
  options.name_space = "job7";
  options.label = "trainer-0";
  auto store = connect(server, options);
  check(must_fail(store.drop_namespace("")), ErrorCode::permission_denied);
  check(must_fail(supervisor.drop_namespace("")), ErrorCode::invalid_argument);
  check(must_fail(supervisor.drop_namespace("never")), ErrorCode::not_found);
  const Error in_use = must_fail(supervisor.drop_namespace("job7"));
  check(in_use, ErrorCode::busy);
  CHECK(in_use.detail.find("(trainer-0)") != std::string::npos);
  CHECK(in_use.message().find("wait until that call") == std::string::npos);
}

TEST_CASE("what is too large says of what, and the limit to raise") {
  ServerOptions options;
  options.world_size_max = 8;
  auto server = start_server(options);
  auto store = connect(server);
  const Error of_world = must_fail(StatelessProcessGroup::create(store, "g", 0, 9));
  check(of_world, ErrorCode::too_large);
  CHECK(of_world.detail.find("world_size_max") != std::string::npos);
  CHECK(of_world.message().find("split") == std::string::npos);
  const Error of_key = must_fail(store.set(std::string(2000, 'k'), ""));
  CHECK(of_key.detail.find("key_bytes_max") != std::string::npos);
  CHECK(of_key.message().size() < 300);
}

TEST_CASE("errors of calls that are ended from outside have the documented fields") {
  auto server = start_server();
  auto store = connect(server);
  auto observer = connect(server);
  std::thread canceller([&] {
    await([&] { return held_count(observer, "waits") == 1; });
    store.cancel();
  });
  check(must_fail(store.get("never", 20s)), ErrorCode::cancelled);
  canceller.join();
  store.close();
  check(must_fail(store.get("never", 20s)), ErrorCode::closed);
}

TEST_CASE("a call that would deadlock has the documented fields") {
  auto server = start_server();
  StoreOptions options;
  options.handlers = HandlerPlace::io_thread;
  auto store = connect(server, options);
  std::promise<Error> error;
  store.set_async("k", "v", {}, 10s,
                  [&](Result<bool>) { error.set_value(must_fail(store.get("k"))); });
  check(error.get_future().get(), ErrorCode::would_deadlock);
}

TEST_CASE("errors of a full server have the documented fields") {
  ServerOptions options;
  options.connections_max = 1;
  options.memory_bytes_max = 4U << 20;
  auto server = start_disturbed_server(options);
  auto store = connect(server);
  check(connect_error(store.address()), ErrorCode::busy);
  must(store.set("a", std::string(1'500'000, 'x')));
  // The suffix fits, the longer value beside the old one does not; nor does a frame that long.
  check(must_fail(store.append("a", std::string(1'500'000, 'x'))), ErrorCode::resource_exhausted);
  check(must_fail(store.set("b", std::string(8'000'000, 'x'))), ErrorCode::resource_exhausted);
}

TEST_CASE("errors of who answers, or does not, have the documented fields") {
  auto server = std::make_optional(start_server());
  const std::string address = server->addresses().front();
  ServerOptions same;
  same.listen = {address};
  check(must_fail(Server::start(same)), ErrorCode::address_in_use);
  ServerOptions open;
  open.listen = {"0.0.0.0:0"};
  check(must_fail(Server::start(open)), ErrorCode::permission_denied);
  server.reset();
  check(connect_error(address), ErrorCode::unavailable);
  Stranger web("HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(400, ' '));
  check(connect_error(web.address(), 10s), ErrorCode::protocol_error);

  wire::ServerHello hello;
  hello.version = 999;
  std::string newer;
  wire::append_server_hello(newer, hello);
  Stranger of_another_version(newer);
  check(connect_error(of_another_version.address(), 10s), ErrorCode::unsupported);
}

TEST_CASE("the error of a call to a hosted server that is silent has the documented fields") {
  ServerOptions options;
  options.session_timeout = 5s;
  auto server = start_disturbed_server(options);
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  must(store.set("k", "v"));
  proxy.pause();
  const Error error = must_fail(store.get("never", 60s));
  check(error, ErrorCode::unavailable);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
}

TEST_CASE("errors of a session that is cut off have the documented fields") {
  ServerOptions options;
  options.session_timeout = 5s;
  options.standalone = true;
  auto server = start_disturbed_server(options);
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  auto observer = connect(server);
  must(store.set("k", "v"));
  proxy.pause();
  check(must_fail(store.set("k", "w", {}, 100ms)), ErrorCode::outcome_unknown);
  check(must_fail(store.get("never", 60s)), ErrorCode::suspended);
  await([&] { return held_count(observer, "sessions") == 1; });
  proxy.cut();
  proxy.resume();
  await([&] { return must_fail(store.get("never", 1s)).code == ErrorCode::session_expired; });
  check(must_fail(store.get("never", 1s)), ErrorCode::session_expired);
}

TEST_CASE("errors of a session that others ended have the documented fields") {
  auto server = std::make_optional(start_disturbed_server());
  const std::string address = server->addresses().front();
  auto store = connect(address);
  {
    RawClient supervisor(address);
    wire::ClientHello hello;
    hello.role = wire::Role::supervisor;
    REQUIRE(supervisor.say_hello(hello).status == 0);
    const wire::ReportDead report{store.process().id, "a test says so"};
    REQUIRE(supervisor.call(report).header.code == 0);
  }
  check(must_fail(store.get("k", 10s)), ErrorCode::fenced);
  must(store.reopen(10s));
  server.reset();
  ServerOptions same;
  same.listen = {address};
  server = start_disturbed_server(same);
  await([&] { return must_fail(store.get("k", 0s)).code == ErrorCode::server_restarted; });
  check(must_fail(store.get("k", 0s)), ErrorCode::server_restarted);
}

}  // namespace
}  // namespace muster::test
