#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include <doctest/doctest.h>

#include "e2e/tcpstore/client.h"

// TCPStore's protocol has no word for who somebody is: what that means where there are credentials.

namespace muster::test::tcpstore {
namespace {

/// A file in which somebody is known.
struct Known {
  Known() {
    std::ofstream(path) << "somebody ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4= * all\n";
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
  }

  TemporaryFolder folder;
  std::string path = folder / "known";
};

TEST_CASE(
    "a port for TCPStore that others can reach has to be allowed where there are credentials") {
  const Known known;
  const std::vector<std::string> flags = {"--tcpstore", "0.0.0.0:0", "--credentials", known.path};
  Process refused(musterd_options(with_listen(flags)));
  const std::string errors = refused.read_errors();
  CAPTURE(errors);
  CHECK(refused.wait().exit_code == 4);
  CHECK(errors.find("clients of TCPStore cannot say who they are") != std::string::npos);
  std::vector<std::string> allowed = flags;
  allowed.emplace_back("--allow-unauthenticated-tcpstore");
  const Daemon daemon(allowed);
  Client(daemon.tcpstore()).flush();
}

TEST_CASE("with credentials nobody is asked who he is at loopback, and the log says so") {
  const Known known;
  Daemon daemon({"--tcpstore", "127.0.0.1:0=job", "--credentials", known.path});
  Client client(daemon.tcpstore());
  CHECK(client.ask(set("/a", "1") + get("/a"), 9) == text("1"));
  RawClient stranger(daemon.address());
  wire::ClientHello hello;
  hello.name_space = "job";
  std::string bytes;
  wire::append_client_hello(bytes, hello);
  stranger.send(bytes);
  CHECK(stranger.is_closed());
  daemon.process().send_signal(SIGTERM);
  const std::string log = daemon.process().read_errors();
  CHECK(log.find("exposed: TCPStore at 127.0.0.1:") != std::string::npos);
  CHECK(log.find("keys of namespace") != std::string::npos);
}

}  // namespace
}  // namespace muster::test::tcpstore
