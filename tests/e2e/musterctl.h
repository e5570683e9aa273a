#pragma once

#include <cstdlib>
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
  Said operator()(std::vector<std::string> arguments) const {
    Process::Options options;
    options.command = {std::getenv("MUSTERCTL")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.environment = {{"MUSTER_SERVER", address()}};
    Process process(options);
    Said said;
    said.output = process.read_output();
    said.errors = process.read_errors();
    said.exit_code = process.wait().exit_code;
    return said;
  }

  const std::string& address() const { return server_.addresses().front(); }

 private:
  Server server_ = Server::start().value();
};

}  // namespace muster::test
