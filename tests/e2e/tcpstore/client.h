#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "e2e/server/musterd.h"
#include "support/raw_client.h"
#include "support/tcpstore_bytes.h"

namespace muster::test::tcpstore {

/// A client of TCPStore's, by hand, that has connected as PyTorch 2 does.
class Client : public RawClient {
 public:
  explicit Client(const std::string& address) : RawClient(address) {
    send(validate + ping(7));
    REQUIRE(receive(4) == number(7, 4));
  }

  /// Says it, and returns as many bytes as are to come back.
  std::string ask(std::string_view said, std::size_t answer_bytes) {
    send(said);
    return receive(answer_bytes);
  }
  /// Until all that was said before has been handled.
  void flush() { REQUIRE(ask(ping(8), 4) == number(8, 4)); }
};

/// A musterd that serves TCPStore, at one port or several.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> flags = {"--tcpstore", "127.0.0.1:0"})
      : musterd_(with_port_file(std::move(flags))) {
    std::ifstream file(folder_ / "ports");
    for (std::string port; std::getline(file, port);) ports_.push_back(port);
    REQUIRE(ports_.size() >= 2);
  }

  Musterd& process() { return musterd_; }
  /// Of its own protocol's.
  const std::string& address() const { return musterd_.address(); }
  /// Of the ports for TCPStore.
  std::string tcpstore(std::size_t index = 0) const { return "127.0.0.1:" + ports_.at(index + 1); }
  /// As they stand in the port file, the one of its own protocol first.
  const std::vector<std::string>& ports() const { return ports_; }

 private:
  std::vector<std::string> with_port_file(std::vector<std::string> flags) const {
    flags.insert(flags.end(), {"--port-file", folder_ / "ports"});
    return flags;
  }

  TemporaryFolder folder_;
  Musterd musterd_;
  std::vector<std::string> ports_;
};

}  // namespace muster::test::tcpstore
