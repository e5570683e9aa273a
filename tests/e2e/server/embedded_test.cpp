#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include <doctest/doctest.h>

#include "net/io_thread.h"
#include "support/raw_client.h"
#include "support/server.h"

// The server as an object in somebody's process: its start, its stop, its manners.

namespace {

using namespace std::chrono_literals;
using muster::ErrorCode;
using muster::IoThread;
using muster::Server;
using muster::ServerOptions;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

void say_goodbye(RawClient& client) {
  std::string bytes;
  wire::append_goodbye(bytes, "done");
  client.send(bytes);
}

TEST_CASE("a stop tells the clients why, and counts them") {
  Server server = start_disturbed_server();
  auto first = RawClient::with_session(server.addresses().front());
  auto second = RawClient::with_session(server.addresses().front());
  RawClient newcomer(server.addresses().front());
  std::future<std::uint64_t> left =
      std::async(std::launch::async, [&] { return server.stop("maintenance"); });
  CHECK(first.receive_goodbye() == "maintenance");
  CHECK(second.receive_goodbye() == "maintenance");
  CHECK(first.is_closed());
  CHECK(second.is_closed());
  CHECK(newcomer.is_closed());
  CHECK(left.get() == 2);
  CHECK_THROWS(RawClient(server.addresses().front()));
  CHECK(server.stop("again") == 0);
}

TEST_CASE("a stop with a timeout waits for the sessions of others to go") {
  Server server = start_disturbed_server();
  auto own = RawClient::with_session(server.addresses().front());
  auto other = RawClient::with_session(server.addresses().front());
  std::future<std::uint64_t> left =
      std::async(std::launch::async, [&] { return server.stop("all done", 20s, 1); });
  CHECK(left.wait_for(100ms) == std::future_status::timeout);
  CHECK(other.call(wire::Add{"counter", 1}).header.code == 0);  // it is still served
  say_goodbye(other);
  CHECK(own.receive_goodbye() == "all done");
  CHECK(own.is_closed());
  CHECK(left.get() == 0);
}

TEST_CASE("a stop that nobody heeds ends at its timeout") {
  Server server = start_disturbed_server();
  auto stubborn = RawClient::with_session(server.addresses().front());
  const auto began = std::chrono::steady_clock::now();
  CHECK(server.stop("time is up", 200ms) == 1);
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took >= 200ms);
  CHECK(took < 15s);
  CHECK(stubborn.receive_goodbye() == "time is up");
}

TEST_CASE("a server that goes out of scope tells its clients") {
  auto server = std::make_unique<Server>(start_disturbed_server());
  auto client = RawClient::with_session(server->addresses().front());
  server.reset();
  CHECK_FALSE(client.receive_goodbye().empty());
  CHECK(client.is_closed());
}

TEST_CASE("servers share an I/O thread and come and go on it") {
  const auto io_thread = IoThread::create();
  ServerOptions options;
  options.io_thread = io_thread;
  const Server lasting = start_disturbed_server(options);
  auto client = RawClient::with_session(lasting.addresses().front());
  for (int count = 0; count < 20; ++count) {
    const Server brief = start_disturbed_server(options);
    auto guest = RawClient::with_session(brief.addresses().front());
    CHECK(guest.call(wire::Add{"counter", 1}).header.code == 0);
  }
  CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
}

TEST_CASE("a server is served by the thread that says so, as long as it says") {
  ServerOptions options;
  options.io_thread = IoThread::create_for_caller();
  Server server = start_disturbed_server(options);
  std::atomic<bool> is_over{false};
  std::future<std::string> goodbye = std::async(std::launch::async, [&] {
    auto client = RawClient::with_session(server.addresses().front());
    CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
    is_over = true;
    options.io_thread->wake();
    return client.receive_goodbye();
  });
  CHECK(options.io_thread->run_until([&] { return is_over.load(); }));
  CHECK(server.stop("maintenance") == 1);  // serves while it waits for the client to hear it
  CHECK(goodbye.get() == "maintenance");
}

TEST_CASE("a stop on the thread that serves waits for the sessions of others to go") {
  ServerOptions options;
  options.io_thread = IoThread::create_for_caller();
  Server server = start_disturbed_server(options);
  std::atomic<bool> is_over{false};
  std::promise<void> stops;
  std::future<std::string> goodbye = std::async(std::launch::async, [&] {
    auto own = RawClient::with_session(server.addresses().front());
    auto other = RawClient::with_session(server.addresses().front());
    is_over = true;
    options.io_thread->wake();
    stops.get_future().wait();
    CHECK(other.call(wire::Add{"counter", 1}).header.code == 0);
    say_goodbye(other);
    return own.receive_goodbye();
  });
  options.io_thread->run_until([&] { return is_over.load(); });
  stops.set_value();
  CHECK(server.stop("all done", 20s, 1) == 0);
  CHECK(goodbye.get() == "all done");
}

TEST_CASE("a server that was never served gives its address back") {
  ServerOptions options;
  options.io_thread = IoThread::create_for_caller();
  std::string address;
  {
    const Server server = start_disturbed_server(options);
    address = server.addresses().front();
  }
  CHECK_THROWS(RawClient(address));
  options.listen = {address};
  CHECK(Server::start(options));
}

TEST_CASE("a stop within a turn of the thread that serves does not wait") {
  ServerOptions options;
  options.io_thread = IoThread::create_for_caller();
  Server server = start_disturbed_server(options);
  bool is_over = false;
  options.io_thread->impl().loop().post([&] {
    CHECK_FALSE(options.io_thread->run_until([] { return true; }));
    CHECK(server.stop("at once", 20s) == 0);
    is_over = true;
  });
  CHECK(options.io_thread->run_until([&] { return is_over; }));
}

TEST_CASE("a server may be closed on its own I/O thread, also with the last reference to it") {
  ServerOptions options;
  options.io_thread = IoThread::create();
  auto server = std::make_shared<Server>(start_disturbed_server(options));
  auto client = RawClient::with_session(server->addresses().front());
  std::promise<void> is_last;
  options.io_thread->impl().loop().post([&, last = server]() mutable {
    is_last.get_future().wait();
    last.reset();
  });
  server.reset();
  options.io_thread.reset();
  is_last.set_value();
  CHECK_FALSE(client.receive_goodbye().empty());
  CHECK(client.is_closed());
}

TEST_CASE("what is wrong with an option is said before anything is bound") {
  ServerOptions options;
  options.session_timeout = 1s;
  const auto server = Server::start(options);
  REQUIRE_FALSE(server);
  CHECK(server.error().code == ErrorCode::invalid_argument);
  options = {};
  options.listen = {"0.0.0.0:0"};
  const auto open = Server::start(options);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == ErrorCode::permission_denied);
}

TEST_CASE("an address in use is named") {
  const Server first = start_disturbed_server();
  ServerOptions options;
  options.listen = first.addresses();
  const auto second = Server::start(options);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::address_in_use);
  CHECK(second.error().where == first.addresses().front());
}

TEST_CASE("a socket that was handed in is taken over, unless the start fails") {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ServerOptions options;
  options.listening_socket = fd;
  const auto failed = Server::start(options);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::invalid_argument);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0);
  REQUIRE(::listen(fd, 5) == 0);
  {
    const Server server = start_disturbed_server(options);
    CHECK(server.addresses().size() == 1);
    CHECK(server.port() != 0);
    auto client = RawClient::with_session(server.addresses().front());
    CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
  }
}

TEST_CASE("one server listens at many addresses") {
  ServerOptions options;
  const std::string path = "unix:/tmp/muster-e2e-" + std::to_string(::getpid());
  options.listen = {"localhost:0", path};
  const Server server = start_disturbed_server(options);
  CHECK(server.addresses().back() == path);
  auto writer = RawClient::with_session(server.addresses().front());
  CHECK(writer.call(wire::Add{"counter", 41}).header.code == 0);
  for (const std::string& address : server.addresses()) {
    CAPTURE(address);
    auto client = RawClient::with_session(address);
    CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
  }
}

TEST_CASE("a forked child closes what it has inherited and the parent serves on") {
  auto server = std::make_unique<Server>(start_disturbed_server());
  auto client = RawClient::with_session(server->addresses().front());
  const pid_t child = ::fork();
  if (child == 0) {
    server.reset();  // waits for no thread: there is none
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
  auto later = RawClient::with_session(server->addresses().front());
  CHECK(later.call(wire::Add{"counter", 1}).header.code == 0);
}

}  // namespace
