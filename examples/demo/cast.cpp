#include "cast.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "demo.h"

namespace demo {

void Cast::start(int process, const std::vector<std::string>& command) {
  children_[process] = std::make_unique<Child>("process " + std::to_string(process), command);
}

void Cast::kill(int process) {
  at(process).send_signal(SIGKILL);
  require(at(process).wait() == -SIGKILL, "a process that is killed dies");
  children_.erase(process);
}

int Cast::left_ms() const {
  return static_cast<int>(std::max<std::int64_t>(until_us_ - now_us(), 0) / 1000);
}

void Cast::take_line(int process, const std::string& line) {
  const auto space = line.find(' ');
  if (line.empty() || line[0] != fact_mark || space == std::string::npos) {
    throw Broken("process " + std::to_string(process) + ": " + line);
  }
  facts_[line.substr(1, space - 1)].push_back({process, line.substr(space + 1)});
}

void Cast::poll_outputs() {
  std::vector<pollfd> ready;
  std::vector<int> processes;
  for (const auto& [process, child] : children_) {
    if (!child->output_open()) continue;
    ready.push_back({child->output(), POLLIN, 0});
    processes.push_back(process);
  }
  require(!ready.empty(), "no process ends before its time");
  require(::poll(ready.data(), ready.size(), left_ms()) > 0, "the demo ends in its time");
  for (std::size_t index = 0; index < ready.size(); ++index) {
    if (ready[index].revents == 0) continue;
    for (const std::string& line : at(processes[index]).read_lines()) {
      take_line(processes[index], line);
    }
  }
}

const std::vector<Fact>& Cast::await(const std::string& name, std::size_t count) {
  while (facts_[name].size() < count) poll_outputs();
  return facts_[name];
}

std::int64_t Cast::sum(const std::string& name) {
  std::int64_t sum = 0;
  for (const Fact& fact : facts_[name]) sum += std::stoll(fact.value);
  return sum;
}

std::int64_t Cast::max(const std::string& name) {
  std::int64_t max = 0;
  for (const Fact& fact : facts_[name]) max = std::max<std::int64_t>(max, std::stoll(fact.value));
  return max;
}

void Cast::await_ends() {
  for (const auto& [process, child] : children_) {
    require(child->wait() == 0, child->name() + " ends in order");
  }
}

std::string output_of(const std::vector<std::string>& command) {
  Child child(command.front(), command);
  std::string output;
  while (child.output_open()) {
    for (const std::string& line : child.read_lines()) output += line + '\n';
  }
  const int status = child.wait();
  require(status == 0, command.front() + " exits with 0, not with " + std::to_string(status) +
                           ", after: " + output);
  return output;
}

}  // namespace demo
