#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/communicator_process.h"
#include "support/sanitizers.h"

namespace muster::test {

using namespace std::chrono_literals;
using Steps = std::vector<std::string>;

inline Steps operator+(Steps steps, const Steps& further) {
  steps.insert(steps.end(), further.begin(), further.end());
  return steps;
}

/// Slower than this is only a machine that is busy with other things, or with a sanitizer.
constexpr std::chrono::milliseconds leeway{MUSTER_TEST_HAS_ASAN || MUSTER_TEST_HAS_TSAN ? 8000
                                                                                        : 3000};

/// A server in a process of its own.
class ServerProcess {
 public:
  explicit ServerProcess(int port = 0)
      : process_(server_process(port)), address_(process_.read_line().value_or("")) {
    REQUIRE(!address_.empty());
  }

  const std::string& address() const { return address_; }
  int port() const { return std::atoi(address_.substr(address_.rfind(':') + 1).c_str()); }
  Process& process() { return process_; }

 private:
  Process process_;
  const std::string address_;
};

/// The ranks of one group, each a process.
class Team {
 public:
  using Environment = std::map<std::string, std::string>;

  Team(std::string server, std::string group)
      : server_(std::move(server)), group_(std::move(group)) {}

  void start(int rank, int world_size, const Steps& steps, const Environment& environment = {}) {
    processes_[rank].emplace_back(
        communicator_process({server_, group_, rank, world_size, steps, environment}));
  }

  /// The process that was started last with this rank.
  Process& operator[](int rank) { return processes_.at(rank).back(); }

  /// What a rank says of this step; those before it went well.
  Said said(int rank, const std::string& step) {
    CAPTURE(group_);
    CAPTURE(rank);
    CAPTURE(step);
    for (;;) {
      const auto said = said_by((*this)[rank]);
      REQUIRE(said.has_value());
      if (said->step == step) return *said;
      CAPTURE(said->step);
      CAPTURE(said->text);
      CHECK(said->code == "ok");
    }
  }
  /// The same of a step that goes well; gives its text.
  std::string done(int rank, const std::string& step) {
    const Said one = said(rank, step);
    CAPTURE(group_);
    CAPTURE(rank);
    CAPTURE(step);
    CAPTURE(one.ranks);
    CAPTURE(one.text);
    CHECK(one.code == "ok");
    return one.text;
  }

 private:
  const std::string server_;
  const std::string group_;
  std::map<int, std::list<Process>> processes_;
};

}  // namespace muster::test
