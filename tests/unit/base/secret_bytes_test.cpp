#include "base/secret/secret_bytes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace muster::base {
namespace {

bool is_zero(const SecretBytes& bytes) {
  return std::all_of(bytes.data(), bytes.data() + bytes.size(),
                     [](auto byte) { return byte == 0; });
}

/// Whether a core dump would have what is there.
bool is_dumped(const void* there) {
  std::ifstream maps("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(there);
      is_it = begin <= at && at < end;
    } else if (is_it && line.rfind("VmFlags:", 0) == 0) {
      return line.find(" dd") == line.npos;
    }
  }
  FAIL("no mapping");
  return true;
}

TEST_CASE("secret bytes are zero at first, stay where they are, and are in no core dump") {
  for (const std::size_t size : {1UL, 32UL, 64UL, 65UL, 4096UL, 1UL << 20}) {
    SecretBytes first(size);
    REQUIRE(first.size() == size);
    CHECK(is_zero(first));
    CHECK_FALSE(is_dumped(first.data()));
    CHECK_FALSE(is_dumped(first.data() + size - 1));
    std::memset(first.data(), 'x', size);
    const unsigned char* const there = first.data();
    SecretBytes second(std::move(first));
    CHECK(second.data() == there);
    CHECK(second.size() == size);
    SecretBytes third;
    CHECK(third.data() == nullptr);
    third = std::move(second);
    CHECK(third.data() == there);
    CHECK(std::count(third.data(), third.data() + size, 'x') == static_cast<std::ptrdiff_t>(size));
  }
  CHECK(is_dumped(std::vector<char>(100).data()));
}

TEST_CASE("a place of secret bytes that was let go is zero for whoever has it next") {
  std::set<const unsigned char*> places;
  for (int time = 0; time < 2; ++time) {
    std::vector<SecretBytes> all;
    for (int count = 0; count < 1000; ++count) {
      SecretBytes& bytes = all.emplace_back(64);
      CHECK(is_zero(bytes));
      std::memset(bytes.data(), 'x', 64);
      if (time == 0) {
        CHECK(places.insert(bytes.data()).second);
      } else {
        CHECK(places.count(bytes.data()) == 1);
      }
    }
  }
}

TEST_CASE("threads that take and free secret bytes at once have different ones") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int number = 1; number <= 4; ++number) {
    threads.emplace_back([number, &wrong] {
      for (int round = 0; round < 2000; ++round) {
        std::vector<SecretBytes> own;
        for (int count = 0; count < 8; ++count) {
          SecretBytes& bytes = own.emplace_back(32);
          wrong += is_zero(bytes) ? 0 : 1;
          std::memset(bytes.data(), number, 32);
        }
        for (const SecretBytes& bytes : own) {
          wrong += std::count(bytes.data(), bytes.data() + 32, number) == 32 ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a forked child has its own secret bytes") {
  SecretBytes ours(32);
  std::memset(ours.data(), 'p', 32);
  const pid_t child = ::fork();
  if (child == 0) {
    std::memset(ours.data(), 'c', 32);
    const SecretBytes another(32);
    ::_exit(is_zero(another) && !is_dumped(another.data()) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::count(ours.data(), ours.data() + 32, 'p') == 32);
}

}  // namespace
}  // namespace muster::base
