// A server that is broken or hostile cannot make a collective return other than what it promises.

#include "client/group/round_values.h"

#include <doctest/doctest.h>

#include "wire/reply.h"

namespace muster::client {
namespace {

std::string body_of(const std::vector<std::string_view>& values) {
  wire::RoundReply reply;
  reply.values = values;
  std::string body;
  wire::append_body(body, reply);
  return body;
}

template <class T>
void check_refused(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::protocol_error);
}

TEST_CASE("the values of all ranks are as many as there are ranks") {
  const auto all = values_of(body_of({"a", "", "c"}), 3);
  REQUIRE(all.has_value());
  CHECK(*all == std::vector<std::string>{"a", "", "c"});
  const auto none = values_of(body_of({}), 0);
  REQUIRE(none.has_value());
  CHECK(none->empty());
}

TEST_CASE("another count of values breaks the protocol") {
  check_refused(values_of(body_of({}), 3));
  check_refused(values_of(body_of({"a", "b"}), 3));
  check_refused(values_of(body_of({"a", "b", "c", "d"}), 3));
  check_refused(values_of(body_of({"a"}), 0));
}

TEST_CASE("one value comes to those who are not the root") {
  const auto value = value_of(body_of({"value"}), std::nullopt);
  REQUIRE(value.has_value());
  CHECK(*value == "value");
  check_refused(value_of(body_of({}), std::nullopt));
  check_refused(value_of(body_of({"value", "another"}), std::nullopt));
}

TEST_CASE("the root keeps its own value and gets none") {
  const auto value = value_of(body_of({}), "own");
  REQUIRE(value.has_value());
  CHECK(*value == "own");
  check_refused(value_of(body_of({"another"}), "own"));
}

TEST_CASE("a reply that is cut at any byte is refused") {
  const std::string body = body_of({"one", "two"});
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    check_refused(values_of(std::string_view(body).substr(0, bytes), 2));
    check_refused(value_of(body.substr(0, bytes), std::nullopt));
  }
}

}  // namespace
}  // namespace muster::client
