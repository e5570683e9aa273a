#include <cstdlib>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "e2e/server/musterd.h"
#include "muster/store.h"
#include "support/server.h"

// Where a sandbox hides all that is random nobody starts: what a server draws itself, such as the
// tokens with which sessions are resumed, could be guessed.

namespace {

using muster::ErrorCode;
using muster::Server;
using muster::Store;
using muster::test::must_fail;
using muster::test::musterd_options;
using muster::test::Process;
using muster::test::with_listen;

constexpr std::string_view no_random = "the system gives no random numbers";

/// As long as it lives.
class NoRandom {
 public:
  NoRandom() { ::setenv("MUSTER_TEST_NO_RANDOM", "1", 1); }
  ~NoRandom() { ::unsetenv("MUSTER_TEST_NO_RANDOM"); }
  NoRandom(const NoRandom&) = delete;
  NoRandom& operator=(const NoRandom&) = delete;
};

TEST_CASE("a store and a server do not start, and say so") {
  const NoRandom sandbox;
  for (const muster::Error& error :
       {must_fail(Store::connect("127.0.0.1:1")), must_fail(Server::start())}) {
    CHECK(error.code == ErrorCode::unavailable);
    CHECK(error.detail.find(no_random) != std::string::npos);
  }
}

TEST_CASE("musterd says so and ends with code 1") {
  Process::Options options = musterd_options(with_listen({}));
  options.environment = {{"MUSTER_TEST_NO_RANDOM", "1"}};
  Process musterd(options);
  CHECK(musterd.wait().exit_code == 1);
  CHECK(musterd.read_errors().find(no_random) != std::string::npos);
}

}  // namespace
