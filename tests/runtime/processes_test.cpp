#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/job.h"
#include "support/process.h"

// Jobs of real processes: what only a process can do.

namespace muster::test {
namespace {

std::unique_ptr<Process> start_rank(int rank, int world_size, const std::string& store,
                                    const std::string& role) {
  Process::Options options;
  options.command = {std::getenv("RUNTIME_RANK"), role};
  for (const auto& [name, value] : variables_of(rank, world_size, store))
    options.environment[name] = value;
  options.take_errors = false;
  return std::make_unique<Process>(options);
}

TEST_CASE("abort tells the others why, in whatever group they wait, and ends with its code") {
  auto server = start_disturbed_server();
  const std::string& store = server.addresses().front();
  std::vector<std::unique_ptr<Process>> ranks;
  for (const char* const role : {"aborts", "waits", "waits_in_group"})
    ranks.push_back(start_rank(static_cast<int>(ranks.size()), 3, store, role));
  for (const auto& rank : ranks) CHECK(rank->read_line() == "ready");
  ranks[0]->send_signal(SIGUSR1);
  for (const std::size_t rank : {1U, 2U})
    CHECK(ranks[rank]->read_line().value_or("nothing") == "interrupted: the loss is nan; rank 0");
  CHECK(ranks[0]->wait().exit_code == 7);
  for (const std::size_t rank : {1U, 2U}) ranks[rank]->send_signal(SIGUSR1);
  for (const std::size_t rank : {1U, 2U}) CHECK(ranks[rank]->wait().exit_code == 0);
}

}  // namespace
}  // namespace muster::test
