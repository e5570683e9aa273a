#include "muster/codec_json.h"

#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "support/allocations.h"

namespace muster::test {
namespace {

struct Endpoint {
  std::string host;
  int port = 0;
  std::vector<std::string> tags;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Endpoint, host, port, tags)
};

template <class T>
ErrorCode json_refusal(std::string_view bytes) {
  const auto decoded = JsonCodec::decode<T>(bytes);
  REQUIRE_FALSE(decoded.has_value());
  return decoded.error().code;
}

TEST_CASE("an object comes back from JSON as it was") {
  const Endpoint endpoint{"gpu-1", 29500, {"a", "\"quoted\" [brackets]"}};
  const auto bytes = JsonCodec::encode(endpoint);
  REQUIRE(bytes);
  CHECK(nlohmann::json::parse(*bytes)["port"] == 29500);
  const auto back = JsonCodec::decode<Endpoint>(*bytes);
  REQUIRE(back.has_value());
  CHECK(*back == endpoint);

  const auto number = JsonCodec::decode<std::map<std::string, double>>(R"({"a": 1.5})");
  REQUIRE(number);
  CHECK(number->at("a") == 1.5);
  const auto free_form = JsonCodec::decode<nlohmann::json>(R"([1, {"x": null}])");
  REQUIRE(free_form);
  CHECK(free_form->at(1).contains("x"));
}

TEST_CASE("what is no JSON, or of another shape, is refused") {
  const auto bytes = JsonCodec::encode(Endpoint{"host", 1, {"t"}});
  REQUIRE(bytes);
  for (std::size_t size = 0; size < bytes->size(); ++size) {
    CHECK(json_refusal<Endpoint>(std::string_view(*bytes).substr(0, size)) ==
          ErrorCode::codec_failure);
  }
  CHECK(json_refusal<Endpoint>(*bytes + "]") == ErrorCode::codec_failure);
  CHECK(json_refusal<Endpoint>("[1, 2]") == ErrorCode::codec_failure);
  CHECK(json_refusal<int>("\"text\"") == ErrorCode::codec_failure);
  CHECK(JsonCodec::encode(std::string("\xff\xfe")).error().code == ErrorCode::codec_failure);
}

TEST_CASE("depth and number of values are bounded before the text is parsed") {
  const std::string deep(JsonCodec::depth_max + 1, '[');
  const std::uint64_t before = allocated().bytes;
  const auto too_deep = JsonCodec::decode<nlohmann::json>(deep);
  REQUIRE(!too_deep);
  CHECK(too_deep.error().limit == JsonCodec::depth_max);
  CHECK(allocated().bytes - before < 64 * 1024);

  const std::string nested =
      std::string(JsonCodec::depth_max, '[') + std::string(JsonCodec::depth_max, ']');
  CHECK(JsonCodec::decode<nlohmann::json>(nested));

  std::string many = "[0";
  for (std::size_t index = 0; index < JsonCodec::values_max; ++index) many += ",0";
  many += "]";
  const auto too_many = JsonCodec::decode<nlohmann::json>(many);
  REQUIRE(!too_many);
  CHECK(too_many.error().limit == JsonCodec::values_max);

  CHECK(JsonCodec::decode<std::string>('"' + std::string(1000, '[') + '"'));
}

TEST_CASE("a number that does not fit is refused wherever it stands") {
  for (const char* const number : {"1e99", "-1e99", "1.5", "2147483648", "-2147483649"}) {
    CAPTURE(number);
    CHECK(json_refusal<int>(number) == ErrorCode::codec_failure);
    CHECK(json_refusal<std::vector<int>>("[1, " + std::string(number) + "]") ==
          ErrorCode::codec_failure);
    CHECK(json_refusal<std::set<int>>("[3, " + std::string(number) + ", 1]") ==
          ErrorCode::codec_failure);
    CHECK(json_refusal<Endpoint>(R"({"host": "a", "tags": [], "port": )" + std::string(number) +
                                 "}") == ErrorCode::codec_failure);
  }
  CHECK(json_refusal<std::uint8_t>("300") == ErrorCode::codec_failure);
  CHECK(json_refusal<std::uint64_t>("-1") == ErrorCode::codec_failure);
  CHECK(json_refusal<std::int64_t>("18446744073709551615") == ErrorCode::codec_failure);
  CHECK(json_refusal<float>("1e99") == ErrorCode::codec_failure);

  CHECK(*JsonCodec::decode<int>("-2147483648") == -2147483648);
  CHECK(*JsonCodec::decode<int>("7.0") == 7);
  CHECK(*JsonCodec::decode<std::uint64_t>("18446744073709551615") == 18446744073709551615U);
  CHECK(*JsonCodec::decode<float>("0.1") == 0.1F);
  CHECK(*JsonCodec::decode<std::set<int>>("[3, 1, 2, 3]") == std::set<int>{1, 2, 3});
  const auto by_number = JsonCodec::decode<std::map<int, int>>("[[3, 30], [1, 10]]");
  REQUIRE(by_number.has_value());
  CHECK(by_number->at(3) == 30);
}

/// Reads minutes, and writes seconds.
struct Patience {
  int seconds = 0;

  friend void to_json(nlohmann::json& json, const Patience& patience) { json = patience.seconds; }
  friend void from_json(const nlohmann::json& json, Patience& patience) {
    patience.seconds = json.get<int>() * 60;
  }
};

}  // namespace
}  // namespace muster::test

template <>
inline constexpr bool muster::is_json_checked<muster::test::Patience> = false;

namespace muster::test {
namespace {

TEST_CASE("a type that writes other numbers than it reads can say so") {
  CHECK(JsonCodec::decode<Patience>("2")->seconds == 120);
}

/// As the header advises for bytes of strangers.
struct Port {
  int number = 0;

  friend void to_json(nlohmann::json& json, const Port& port) { json = port.number; }
  friend void from_json(const nlohmann::json& json, Port& port) {
    const auto* const value = json.get_ptr<const nlohmann::json::number_unsigned_t*>();
    if (value == nullptr || *value > 65535) throw std::out_of_range("a port is 0 to 65535");
    port.number = static_cast<int>(*value);
  }
};

struct Service {
  std::string host;
  Port port;
  std::vector<std::string> tags;

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Service, host, port, tags)
};

TEST_CASE("a type that looks at its numbers refuses those that do not fit") {
  const auto with_port = [](const std::string& port) {
    return JsonCodec::decode<Service>(R"({"host": "a", "tags": [], "port": )" + port + "}");
  };
  CHECK(with_port("65535"));
  for (const char* const port : {"65536", "1e99", "-1", "1.5", "true", "\"1\""}) {
    CAPTURE(port);
    const auto decoded = with_port(port);
    REQUIRE_FALSE(decoded.has_value());
    CHECK(decoded.error().code == ErrorCode::codec_failure);
  }
}

TEST_CASE("flipped bytes of JSON give an object or an error, nothing else") {
  const auto good = JsonCodec::encode(Service{"host", {12345}, {"one", "two", "\n"}});
  REQUIRE(good);
  std::mt19937 random(20261121);
  for (int run = 0; run < 5'000; ++run) {
    std::string bytes = *good;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::uint64_t before = allocated().bytes;
    const auto decoded = JsonCodec::decode<Service>(bytes);
    CHECK((decoded || decoded.error().code == ErrorCode::codec_failure));
    CHECK(allocated().bytes - before < 64 * 1024);
  }
}

}  // namespace
}  // namespace muster::test
