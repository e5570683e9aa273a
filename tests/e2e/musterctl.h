#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "muster/server.h"
#include "support/process.h"

namespace muster::test {

/// What a program printed.
struct Said {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

/// musterctl, and a server of its own that it talks to.
class Musterctl {
 public:
  /// For a Process that goes on.
  Process::Options call(const std::vector<std::string>& arguments) const {
    Process::Options options;
    options.command = {std::getenv("MUSTERCTL")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.environment = {{"MUSTER_SERVER", address()}};
    return options;
  }

  Said operator()(const std::vector<std::string>& arguments) const {
    Process process(call(arguments));
    Said said;
    said.output = process.read_output();
    said.errors = process.read_errors();
    said.exit_code = process.wait().exit_code;
    return said;
  }

  const std::string& address() const { return address_; }

  /// The server goes, and its clients are told.
  void stop_server() { server_.reset(); }
  /// Another one comes at the same address.
  void start_server() {
    ServerOptions options;
    options.listen = {address_};
    server_ = Server::start(options).value();
  }

 private:
  std::optional<Server> server_ = Server::start().value();
  std::string address_ = server_->addresses().front();
};

}  // namespace muster::test
