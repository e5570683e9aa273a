#include <signal.h>

#include <fstream>

#include <doctest/doctest.h>

#include "e2e/tcpstore/client.h"

// musterd's flags for TCPStore.

namespace muster::test::tcpstore {
namespace {

struct Refusal {
  int exit_code;
  std::string errors;
};

Refusal refusal_of(std::vector<std::string> flags) {
  Process musterd(musterd_options(with_listen(std::move(flags))));
  std::string errors = musterd.read_errors();
  return {musterd.wait().exit_code, std::move(errors)};
}

TEST_CASE("the port file has the ports of TCPStore below its own, in the order of the flags") {
  const TemporaryFolder folder;
  Musterd musterd({"--tcpstore", "127.0.0.1:0=a", "--tcpstore", "127.0.0.1:0=b", "--port-file",
                   folder / "ports"});
  std::vector<std::string> lines;
  std::ifstream file(folder / "ports");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == 3);
  CHECK(musterd.address() == "127.0.0.1:" + lines[0]);
  CHECK(musterd.read_line() == "musterd serves TCPStore in namespace a on port " + lines[1]);
  CHECK(musterd.read_line() == "musterd serves TCPStore in namespace b on port " + lines[2]);
  Client(("127.0.0.1:" + lines[1])).flush();
  Client(("127.0.0.1:" + lines[2])).flush();
}

TEST_CASE("without the flag no port speaks TCPStore's protocol") {
  const TemporaryFolder folder;
  const Musterd musterd({"--port-file", folder / "ports"});
  std::ifstream file(folder / "ports");
  std::string first;
  std::string second;
  CHECK(std::getline(file, first));
  CHECK_FALSE(std::getline(file, second));
  RawClient client(musterd.address());
  client.send(validate + ping(7));
  CHECK(client.is_closed());
}

TEST_CASE("addresses that other machines can reach have to be allowed") {
  const std::vector<std::vector<std::string>> refused = {
      {"--tcpstore", "0.0.0.0:0"},
      {"--tcpstore", ":0"},
      {"--tcpstore", "127.0.0.1:0", "--tcpstore", "0.0.0.0:0=other"},
  };
  for (const auto& flags : refused) {
    const Refusal refusal = refusal_of(flags);
    CAPTURE(refusal.errors);
    CHECK(refusal.exit_code == 4);
    CHECK(refusal.errors.find("clients of TCPStore cannot say who they are") != std::string::npos);
    CHECK(refusal.errors.find("--allow-unauthenticated-tcpstore") != std::string::npos);
  }
  const std::vector<std::vector<std::string>> allowed = {
      {"--tcpstore", "0.0.0.0:0", "--allow-unauthenticated-tcpstore"},
      {"--tcpstore", "0.0.0.0:0", "--allow-unauthenticated"},
  };
  for (const auto& flags : allowed) {
    const Daemon daemon(flags);
    Client(daemon.tcpstore()).flush();
  }
  // It allows nothing else.
  const Refusal refusal = refusal_of(
      {"--listen", "0.0.0.0:0", "--tcpstore", "127.0.0.1:0", "--allow-unauthenticated-tcpstore"});
  CHECK(refusal.exit_code == 4);
}

TEST_CASE("wrong values of the flags for TCPStore are usage errors that name what is wrong") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--tcpstore", ""}, "--tcpstore"},
      {{"--tcpstore", "127.0.0.1:0="}, "--tcpstore: \"127.0.0.1:0=\" is no address"},
      {{"--tcpstore", "nowhere"}, "--tcpstore"},
      {{"--tcpstore", "127.0.0.1:99999"}, "--tcpstore"},
      {{"--tcpstore", "unix:/tmp/socket"}, "--tcpstore: its clients know TCP addresses alone"},
      {{"--tcpstore", "127.0.0.1:0=" + std::string(1000, 'n')}, "--tcpstore"},
      {{"--tcpstore-dialect", "third"}, "write first, second or newest"},
      {{"--tcpstore-idle-lifetime", "long"}, "--tcpstore-idle-lifetime: \"long\" is no duration"},
      {{"--tcpstore-memory-bytes-max", "2GiB"}, "--tcpstore-memory-bytes-max"},
  };
  for (const auto& one : cases) {
    const Refusal refusal = refusal_of(one.first);
    const std::string& named = one.second;
    CAPTURE(named);
    CAPTURE(refusal.errors);
    CHECK(refusal.exit_code == 2);
    CHECK(refusal.errors.find(named) != std::string::npos);
  }
}

TEST_CASE("a port that somebody has is said to be in use") {
  const Daemon daemon;
  const Refusal refusal = refusal_of({"--tcpstore", daemon.tcpstore()});
  CHECK(refusal.exit_code == 3);
  CHECK(refusal.errors.find(daemon.tcpstore()) != std::string::npos);
}

TEST_CASE("what a client asked for too much of is told in the log, with its address") {
  Daemon daemon({"--tcpstore", "127.0.0.1:0", "--value-bytes-max", "1KiB"});
  Client client(daemon.tcpstore());
  client.send(set("/a", std::string(1025, 'v')));
  CHECK(client.receive(1).empty());
  Client other(daemon.tcpstore());
  other.send(set("/a", "word") + add("/a", 1));
  CHECK(other.receive(1).empty());
  daemon.process().send_signal(SIGTERM);
  const std::string log = daemon.process().read_errors();
  CHECK(log.find("a value of SET") != std::string::npos);
  CHECK(log.find("127.0.0.1:") != std::string::npos);
}

}  // namespace
}  // namespace muster::test::tcpstore
