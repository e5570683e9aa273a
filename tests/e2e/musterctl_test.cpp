#include "musterctl.h"

#include <doctest/doctest.h>

// musterctl as operators and their scripts call it.

namespace {

using muster::test::Musterctl;
using muster::test::Said;

TEST_CASE("keys are set, read, counted, listed and removed") {
  const Musterctl musterctl;
  CHECK(musterctl({"set", "a", "text"}).exit_code == 0);
  CHECK(musterctl({"get", "a"}).output == "text");
  CHECK(musterctl({"set", "a", "other", "--only-if-absent"}).exit_code == 1);
  CHECK(musterctl({"add", "n", "5"}).output == "5\n");
  CHECK(musterctl({"add", "n", "-7"}).output == "-2\n");
  CHECK(musterctl({"add", "n"}).output == "-1\n");
  CHECK(musterctl({"ls", "a"}).output == "4\t-\t-\ta\n");
  CHECK(musterctl({"wait", "a", "n"}).exit_code == 0);
  CHECK(musterctl({"rm", "a", "n"}).exit_code == 0);
  CHECK(musterctl({"get", "a"}).exit_code == 3);
  CHECK(musterctl({"rm", "a"}).exit_code == 3);
}

TEST_CASE("status lists the limits, also as JSON") {
  const Musterctl musterctl;
  CHECK(musterctl({"status"}).output.find("key_bytes_max") != std::string::npos);
  CHECK(musterctl({"--json", "status"}).output.find("\"key_bytes_max\": \"1024\"") !=
        std::string::npos);
}

TEST_CASE("a wait ends at its timeout and says what is absent") {
  const Musterctl musterctl;
  const Said said = musterctl({"--timeout", "0.2", "wait", "never"});
  CHECK(said.exit_code == 3);
  CHECK(said.errors.find("'never' is absent") != std::string::npos);
}

TEST_CASE("where no server answers it says so") {
  const Musterctl musterctl;
  CHECK(musterctl({"--server", "unix:/nowhere", "--timeout", "0.2", "get", "a"}).exit_code == 4);
}

TEST_CASE("numbers out of range and what breaks a rule are usage errors, and change nothing") {
  const Musterctl musterctl;
  const std::vector<std::vector<std::string>> wrong = {
      {"add", "n", "99999999999999999999"},
      {"add", "n", "1.5"},
      {"add", "n", ""},
      {"--timeout", "0", "get", "n"},
      {"--timeout", "-1", "get", "n"},
      {"--timeout", "nan", "get", "n"},
      {"set", "n", "x", "--ttl", "0"},
      {"set", "", "x"},
      {"--namespace", std::string(65, 'n'), "get", "n"},
      {"--server", "nowhere", "get", "n"},
      {"get"},
      {"frobnicate"},
      {},
  };
  for (const auto& arguments : wrong) {
    const Said said = musterctl(arguments);
    CAPTURE(said.errors);
    CHECK(said.exit_code == 2);
    CHECK_FALSE(said.errors.empty());
    CHECK(said.errors.size() < 300);
  }
  CHECK(musterctl({"ls"}).output.empty());
}

}  // namespace
