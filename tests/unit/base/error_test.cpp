#include "muster/error.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "muster/result.h"
#include "support/aborts.h"

using namespace muster;

TEST_CASE("every error code has a name of its own") {
  std::set<std::string_view> names;
  for (int number = 0; number < 1000; ++number) {
    const std::string_view name = name_of(static_cast<ErrorCode>(number));
    if (name != "unknown") CHECK(names.insert(name).second);
  }
  CHECK(names.size() == 46);
  CHECK(name_of(ErrorCode::timed_out) == "timed_out");
}

TEST_CASE("every loss cause has a name of its own") {
  std::set<std::string_view> names;
  for (int number = 0; number < 256; ++number) {
    const std::string_view name = name_of(static_cast<LossCause>(number));
    if (name != "unknown") CHECK(names.insert(name).second);
  }
  CHECK(names.size() == 6);
}

TEST_CASE("whether a call happened has three names") {
  std::set<std::string_view> names;
  for (int number = 0; number < 256; ++number) {
    const std::string_view name = name_of(static_cast<Happened>(number));
    if (name != "unknown") CHECK(names.insert(name).second);
  }
  CHECK(names == std::set<std::string_view>{"unsaid", "no", "maybe"});
}

TEST_CASE("a process id is told as its 32 hexadecimal digits") {
  ProcessId id;
  id.bytes[0] = 0x01;
  id.bytes[15] = 0xfe;
  CHECK(to_string(id) == "010000000000000000000000000000fe");
}

TEST_CASE("value() gives the value, or throws the error with its message") {
  Result<std::string> good(std::string("value"));
  CHECK(good.value() == "value");
  CHECK(*good == "value");

  Error error;
  error.code = ErrorCode::not_found;
  error.operation = "get";
  Result<std::string> bad(error);
  CHECK_FALSE(bad.has_value());
  CHECK(bad.value_or("other") == "other");
  try {
    (void)bad.value();
    FAIL("value() did not throw");
  } catch (const BadResult& thrown) {
    CHECK(thrown.error().code == ErrorCode::not_found);
    CHECK(std::string(thrown.what()) == error.message());
  }
  Result<void> nothing;
  CHECK_NOTHROW(nothing.value());
  nothing = error;
  CHECK_THROWS_AS(nothing.value(), BadResult);
}

TEST_CASE("the value of a failure ends the process, and the error is printed") {
  Error error;
  error.code = ErrorCode::not_found;
  error.operation = "get";
  error.detail = "nobody has set it";
  Result<std::string> text(error);
  const Result<std::string>& constant = text;
  const Result<bool> verdict(error);
  CHECK(test::said_when_aborted([&] { (void)*text; }).find(error.message()) != std::string::npos);
  CHECK(test::said_when_aborted([&] { (void)*constant; }).find(error.message()) !=
        std::string::npos);
  CHECK(test::said_when_aborted([&] { (void)text->size(); }).find(error.message()) !=
        std::string::npos);
  CHECK(test::said_when_aborted([&] { (void)*Result<int>(error); }).find(error.message()) !=
        std::string::npos);
  CHECK(test::said_when_aborted([&] { (void)*verdict; }).find(error.message()) !=
        std::string::npos);
}

TEST_CASE("the error of a success ends the process, which says why") {
  Result<std::string> text(std::string("value"));
  const Result<void> nothing;
  CHECK(test::said_when_aborted([&] { (void)text.error(); }).find("error()") != std::string::npos);
  CHECK(test::said_when_aborted([&] { (void)nothing.error(); }).find("error()") !=
        std::string::npos);
}
