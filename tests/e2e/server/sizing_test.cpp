#include <filesystem>
#include <fstream>
#include <set>

#include <doctest/doctest.h>

#include "e2e/server/musterd.h"
#include "support/raw_client.h"

// The figures of docs/operations.md that are about a whole process: what musterd takes of the
// machine. Those about keys are in tests/unit/core/memory_test.cpp.

namespace {

using muster::test::Musterd;
using muster::test::RawClient;
namespace fs = std::filesystem;
namespace wire = muster::wire;

std::string folder_of(const Musterd& musterd) { return "/proc/" + std::to_string(musterd.pid()); }

std::size_t descriptors_of(const Musterd& musterd) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_of(musterd) + "/fd")) {
    ++count;
  }
  return count;
}

std::uint64_t resident_bytes_of(const Musterd& musterd) {
  std::ifstream status(folder_of(musterd) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  FAIL("there is no VmRSS");
  return 0;
}

TEST_CASE("musterd has one thread, and one descriptor for each connection") {
  const Musterd musterd({});
  const auto threads = [&] {
    std::multiset<std::string> names;
    for (const auto& thread : fs::directory_iterator(folder_of(musterd) + "/task")) {
      std::string name;
      std::getline(std::ifstream(thread.path() / "comm"), name);
      names.insert(name);
    }
    return names;
  };
  { const auto first = RawClient::with_session(musterd.address()); }
  const auto before = threads();
  CHECK(before.count("musterd") == 1);
  CHECK(before.size() <= 2);  // one that a sanitizer may have
  const std::size_t descriptors = descriptors_of(musterd);
  CHECK(descriptors < 64);
  std::vector<RawClient> clients;
  for (int count = 0; count < 100; ++count) {
    clients.push_back(RawClient::with_session(musterd.address()));
  }
  CHECK(threads() == before);
  CHECK(descriptors_of(musterd) <= descriptors + 100);
}

TEST_CASE("an idle connection and its session take a few KiB") {
  constexpr std::size_t count_max = 500;
  const Musterd musterd({"--log-level", "silent"});
  std::vector<RawClient> clients;
  while (clients.size() < 100) clients.push_back(RawClient::with_session(musterd.address()));
  const std::uint64_t before = resident_bytes_of(musterd);
  while (clients.size() < count_max) clients.push_back(RawClient::with_session(musterd.address()));
  const std::uint64_t after = resident_bytes_of(musterd);
  const std::uint64_t each = (after - std::min(before, after)) / (count_max - 100);
  MESSAGE(each, " bytes");
  CHECK(each < 32768);  // also with a sanitizer's memory around every piece
}

}  // namespace
