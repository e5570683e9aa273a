// The parent of the demo: starts musterd and the workers, kills one, checks and prints.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "child.h"
#include "demo.h"
#include "muster/store.h"

namespace demo {
namespace {

constexpr std::int64_t at_most_us = 20'000'000;

// How long a closed connection may take to come back before its rank counts as lost. musterd's
// default is 2 s; nothing in this demo reconnects, so it can be told sooner.
constexpr const char* grace = "100ms";

class Conductor {
 public:
  Conductor(std::string musterd, std::string self)
      : musterd_(std::move(musterd)), self_(std::move(self)), began_us_(now_us()) {}

  int run() { return start_server() && start_workers() && watch() && end() ? 0 : 1; }

 private:
  bool start_server();
  bool start_workers();
  bool watch();
  bool end();
  bool take_line(Child& worker, const std::string& line);
  bool take_fact(const std::string& name, std::int64_t value);
  bool kill_victim();
  bool poll_outputs(int timeout_ms);
  int timeout_ms() const;
  void print(const std::string& who, const std::string& line) const;
  bool fail(const std::string& what) const;

  std::string musterd_;
  std::string self_;
  std::int64_t began_us_;
  std::unique_ptr<Child> server_;
  std::string address_;
  std::optional<muster::Store> store_;
  std::vector<std::unique_ptr<Child>> workers_;
  std::map<std::string, std::int64_t> sums_;
  std::map<std::string, int> counts_;
  std::int64_t noticed_us_max_ = 0;
};

void Conductor::print(const std::string& who, const std::string& line) const {
  std::printf("%7.3f s  %-9s  %s\n", static_cast<double>(now_us() - began_us_) / 1e6, who.c_str(),
              line.c_str());
  std::fflush(stdout);
}

bool Conductor::fail(const std::string& what) const {
  print("demo", "FAILED: " + what);
  return false;
}

int Conductor::timeout_ms() const {
  const std::int64_t left_us = began_us_ + at_most_us - now_us();
  return left_us > 0 ? static_cast<int>(left_us / 1000) + 1 : 0;
}

/// musterd chooses the port and says so on its standard output.
bool Conductor::start_server() {
  server_ = std::make_unique<Child>(
      "musterd", std::vector<std::string>{musterd_, "--listen", "127.0.0.1:0", "--grace", grace,
                                          "--log-level", "warning"});
  const std::string mark = "listening on ";
  while (server_->output_open()) {
    pollfd ready{server_->output(), POLLIN, 0};
    if (::poll(&ready, 1, timeout_ms()) <= 0) return fail("musterd does not say where it listens");
    for (const std::string& line : server_->read_lines()) {
      const auto at = line.find(mark);
      if (at == std::string::npos) continue;
      address_ = line.substr(at + mark.size());
      print("musterd", "pid " + std::to_string(server_->pid()) + " listens on " + address_);
      return true;
    }
  }
  return fail("musterd ended: " + musterd_);
}

bool Conductor::start_workers() {
  auto store = muster::Store::connect(address_, {}, std::chrono::seconds(5));
  if (!store) return fail(store.error().message());
  store_ = *std::move(store);
  for (int process = 0; process < process_count; ++process) {
    workers_.push_back(std::make_unique<Child>(
        "process " + std::to_string(process),
        std::vector<std::string>{self_, "--worker", std::to_string(process), address_}));
  }
  print("demo", std::to_string(process_count) +
                    " processes: groups wide {0,1,2,3}, tight {0,1,2}, pairs {3,4} and {0,4}");
  return true;
}

bool Conductor::poll_outputs(int timeout) {
  std::vector<pollfd> ready;
  for (const auto& worker : workers_) ready.push_back({worker->output(), POLLIN, 0});
  if (::poll(ready.data(), ready.size(), timeout) <= 0) return false;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (ready[i].revents == 0) continue;
    for (const std::string& line : workers_[i]->read_lines()) {
      if (!take_line(*workers_[i], line)) return false;
    }
  }
  return true;
}

bool Conductor::watch() {
  for (;;) {
    bool any_open = false;
    for (const auto& worker : workers_) any_open = any_open || worker->output_open();
    if (!any_open) return true;
    if (timeout_ms() == 0) return fail("not done after 20 s");
    if (!poll_outputs(timeout_ms())) return fail("a process said what it should not, or nothing");
  }
}

bool Conductor::take_line(Child& worker, const std::string& line) {
  if (line.empty() || line[0] != fact_mark) {
    print(worker.name(), line);
    return line.rfind("NOT AS PROMISED", 0) != 0;
  }
  const auto space = line.find(' ');
  if (space == std::string::npos) return false;
  return take_fact(line.substr(1, space - 1), std::atoll(line.c_str() + space));
}

bool Conductor::take_fact(const std::string& name, std::int64_t value) {
  sums_[name] += value;
  ++counts_[name];
  if (name == "noticed_us" && value > noticed_us_max_) noticed_us_max_ = value;
  // All others wait for the victim now.
  if (name == "ready" && counts_[name] == process_count - 1) return kill_victim();
  return true;
}

bool Conductor::kill_victim() {
  Child& worker = *workers_[victim];
  const auto pid = store_->set("demo/victim_pid", std::to_string(worker.pid()));
  const auto killed = store_->set("demo/killed_us", std::to_string(now_us()));
  if (!pid || !killed) return fail("the store takes no note of the kill");
  print("demo", "kill -9 " + std::to_string(worker.pid()) + " (" + worker.name() + ", rank " +
                    std::to_string(victim) + " of wide and tight); grace " + grace);
  worker.send_signal(SIGKILL);
  return true;
}

bool Conductor::end() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const int status = workers_[i]->wait();
    const int promised = static_cast<int>(i) == victim ? -SIGKILL : 0;
    if (status != promised) {
      return fail(workers_[i]->name() + " ended with " + std::to_string(status));
    }
  }
  // Three survivors of `wide` and two of `tight` were told.
  if (counts_["done"] != process_count - 1 || counts_["noticed_us"] != 5) {
    return fail("a process did not report");
  }
  const auto removed = store_->multi_remove({"demo/victim_pid", "demo/killed_us"});
  const auto left = store_->list("");
  if (!removed || !left) return fail("the store does not answer");
  if (*removed != 2 || !left->keys.empty()) return fail("keys are left behind");
  store_->close();
  server_->send_signal(SIGTERM);
  const int status = server_->wait();
  if (status != 0) return fail("musterd ended with " + std::to_string(status));
  char line[200];
  std::snprintf(line, sizeof line,
                "barriers %" PRId64 ", %" PRId64 " us each; loss known to all after %" PRId64
                " ms; keys left 0, wrong values 0",
                sums_["barriers"], sums_["barrier_us"] / sums_["barriers"], noticed_us_max_ / 1000);
  print("demo", line);
  return true;
}

}  // namespace

int run_conductor(const std::string& musterd, const std::string& self) {
  ::signal(SIGPIPE, SIG_IGN);
  return Conductor(musterd, self).run();
}

}  // namespace demo
