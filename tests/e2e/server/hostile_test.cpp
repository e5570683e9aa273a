#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/raw_client.h"
#include "support/server.h"

// Clients that do what they can to be in the way of others.

namespace {

using muster::LogLevel;
using muster::Server;
using muster::ServerOptions;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

/// The lines of a server's log.
class Lines {
 public:
  muster::Logger logger() {
    return [this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      all_.emplace_back(level, line);
    };
  }
  std::ptrdiff_t count(LogLevel lowest, std::string_view part) {
    const std::lock_guard lock(mutex_);
    return std::count_if(all_.begin(), all_.end(), [&](const auto& line) {
      return line.first >= lowest && line.second.find(part) != std::string::npos;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> all_;
};

TEST_CASE("sessions that begin and end in a loop leave few lines in the log, and a count") {
  Lines lines;
  ServerOptions options;
  options.logger = lines.logger();
  Server server = start_disturbed_server(options);
  for (int count = 0; count < 600; ++count) {
    auto client = RawClient::with_session(server.addresses().front());
    std::string goodbye;
    wire::append_goodbye(goodbye, "bye");
    client.send(goodbye);
    CHECK(client.is_closed());
  }
  server.stop("it is over");
  CHECK(lines.count(LogLevel::info, "") < 600);
  CHECK(lines.count(LogLevel::info, "127.0.0.1: ") > 0);
  CHECK(lines.count(LogLevel::info, " more lines were left out") > 0);
}

}  // namespace
