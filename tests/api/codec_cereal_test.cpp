#include "muster/codec_cereal.h"

#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <doctest/doctest.h>

#include "api/codec_types.h"
#include "support/allocations.h"

namespace muster::test {
namespace {

template <class T>
std::string encoded(const T& object) {
  auto bytes = CerealCodec::encode(object);
  REQUIRE(bytes);
  return *bytes;
}

template <class T>
void check_round_trip(const T& object) {
  const auto back = CerealCodec::decode<T>(encoded(object));
  REQUIRE(back.has_value());
  CHECK(*back == object);
}

template <class T>
ErrorCode cereal_refusal(std::string_view bytes) {
  const auto decoded = CerealCodec::decode<T>(bytes);
  REQUIRE_FALSE(decoded.has_value());
  return decoded.error().code;
}

TEST_CASE("an object comes back as it was") {
  check_round_trip(sample_plan());
  check_round_trip(Plan{});
  check_round_trip(std::string("a\0b", 3));
  check_round_trip(std::string());
  check_round_trip(std::uint64_t{0x0123456789abcdef});
  check_round_trip(std::numeric_limits<std::int64_t>::min());
  check_round_trip(-0.25F);
  check_round_trip(true);
  check_round_trip('c');
  check_round_trip(Backend::gloo);
  check_round_trip(std::vector<double>{1, 2.5, -3});
  check_round_trip(std::vector<std::vector<std::string>>{{"a"}, {}, {"b", ""}});
  check_round_trip(std::array<std::int32_t, 3>{1, 2, 3});
  check_round_trip(std::unordered_map<std::string, int>{{"a", 1}, {"b", 2}});
  check_round_trip(std::set<int>{3, 1, 2});
  check_round_trip(std::optional<int>{});
  check_round_trip(std::variant<int, std::string>{"text"});
  check_round_trip(std::deque<std::string>{"x", "y"});
  check_round_trip(std::list<int>{5, 6});
  check_round_trip(std::chrono::nanoseconds(-7));
}

TEST_CASE("behind the fingerprint, the bytes are those of cereal's own portable binary archive") {
  std::ostringstream stream;
  cereal::PortableBinaryOutputArchive::Options little =
      cereal::PortableBinaryOutputArchive::Options::LittleEndian();
  cereal::PortableBinaryOutputArchive archive(stream, little);
  archive(sample_plan());
  const std::string bytes = encoded(sample_plan());
  CHECK(bytes[0] == 3);
  CHECK(stream.str()[0] == 1);
  CHECK(stream.str().substr(1) == bytes.substr(9));
  const auto plan = CerealCodec::decode<Plan>(stream.str());
  REQUIRE(plan);
  CHECK(*plan == sample_plan());
}

TEST_CASE("bytes of a big-endian writer are read") {
  std::ostringstream stream;
  cereal::PortableBinaryOutputArchive::Options big =
      cereal::PortableBinaryOutputArchive::Options::BigEndian();
  cereal::PortableBinaryOutputArchive archive(stream, big);
  archive(sample_plan());
  const auto plan = CerealCodec::decode<Plan>(stream.str());
  REQUIRE(plan);
  CHECK(*plan == sample_plan());
}

TEST_CASE("an object that is cut at any byte is refused") {
  const std::string bytes = encoded(sample_plan());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK(cereal_refusal<Plan>(std::string_view(bytes).substr(0, size)) ==
          ErrorCode::codec_failure);
  }
}

TEST_CASE("a byte left over is refused") {
  CHECK(cereal_refusal<Plan>(encoded(sample_plan()) + '\0') == ErrorCode::codec_failure);
  const std::string without = '\1' + encoded(std::int64_t{1}).substr(9);
  CHECK(cereal_refusal<int>(without) == ErrorCode::codec_failure);
}

TEST_CASE("defect 11: a size that eight hostile bytes declare allocates nothing") {
  std::string hostile("\x01", 1);
  const auto check = [](std::string_view bytes) {
    const std::uint64_t before = allocated().bytes;
    CHECK(cereal_refusal<std::string>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::vector<double>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::vector<bool>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::vector<Large>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::vector<Tree>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::deque<Large>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::list<std::string>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::map<int, int>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<std::unordered_map<int, Large>>(bytes) == ErrorCode::codec_failure);
    CHECK(cereal_refusal<Plan>(bytes) == ErrorCode::codec_failure);
    CHECK(allocated().bytes - before < 64 * 1024);
  };
  for (int shift = 0; shift < 64; shift += 3) {
    std::uint64_t size = std::uint64_t{1} << shift;
    for (const std::uint64_t declared : {size, size - 1, ~size, ~std::uint64_t{0} / 8 + 1}) {
      if (declared == 0) continue;
      std::string bytes = hostile;
      for (int byte = 0; byte < 8; ++byte) {
        bytes.push_back(static_cast<char>(declared >> (8 * byte)));
      }
      check(bytes);
    }
  }
}

TEST_CASE("memory grows with the bytes that came, not with the size they declare") {
  // 4,000 elements of one byte are declared and can be there, but the second is missing.
  std::string bytes("\x01\xa0\x0f\0\0\0\0\0\0", 9);
  bytes += std::string(4000, '\0');
  const std::uint64_t before = allocated().bytes;
  CHECK(cereal_refusal<std::vector<std::pair<Large, std::string>>>(bytes) ==
        ErrorCode::codec_failure);
  CHECK(allocated().bytes - before < 8'000'000);  // 9 bytes an element: 445 came; 4,000 were 16 MB
}

TEST_CASE("objects nested too deeply are refused on both sides") {
  std::string bytes("\x01", 1);
  for (int level = 0; level < 100'000; ++level) bytes += std::string("\x01\0\0\0\0\0\0\0", 8);
  CHECK(cereal_refusal<Tree>(bytes) == ErrorCode::codec_failure);

  Tree tree;
  for (int level = 0; level < 1000; ++level) {
    Tree parent;
    parent.children.push_back(std::move(tree));
    tree = std::move(parent);
  }
  const auto encoded_tree = CerealCodec::encode(tree);
  REQUIRE(!encoded_tree);
  CHECK(encoded_tree.error().code == ErrorCode::codec_failure);
}

TEST_CASE("a bool, a variant's index and a byte order are checked") {
  CHECK(cereal_refusal<bool>(std::string_view("\x01\x02", 2)) == ErrorCode::codec_failure);
  CHECK(cereal_refusal<bool>(std::string_view("\x02\x01", 2)) == ErrorCode::codec_failure);
  const std::string negative("\x01\xff\xff\xff\xff\0\0\0\0", 9);
  CHECK(cereal_refusal<std::variant<int, float>>(negative) == ErrorCode::codec_failure);
  const std::string third("\x01\x02\0\0\0\0\0\0\0", 9);
  CHECK(cereal_refusal<std::variant<int, float>>(third) == ErrorCode::codec_failure);
}

struct Point {
  double x = 0;
  double y = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(x, y);
  }
};
struct Move {
  std::int64_t x = 0;
  double y = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(x, y);
  }
};
/// As Point, said in other ways.
struct NamedPoint {
  double first = 0;
  double second = 0;
  template <class Archive>
  void save(Archive& archive) const {
    archive(cereal::make_nvp("a", first));
    archive& cereal::make_nvp("b", second);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(cereal::make_nvp("a", first));
    archive& cereal::make_nvp("b", second);
  }
};
struct Derived : Point {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::base_class<Point>(this));
  }
};
template <int Fields>
struct Evolving {
  static constexpr std::uint64_t schema_id = 7;
  std::int32_t version = Fields;
  std::int64_t late = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(version);
    if (version > 1) archive(late);
  }
};

template <class T, class As>
bool is_taken(const T& object = {}) {
  const auto decoded = CerealCodec::decode<As>(encoded(object));
  if (!decoded.has_value()) CHECK(decoded.error().code == ErrorCode::codec_mismatch);
  return decoded.has_value();
}

TEST_CASE("an object is taken by what has the same fields, and by nothing else") {
  CHECK_FALSE(is_taken<double, std::int64_t>());
  CHECK_FALSE(is_taken<std::int64_t, std::uint64_t>());
  CHECK_FALSE(is_taken<bool, char>());
  CHECK_FALSE(is_taken<float, std::int32_t>());
  CHECK_FALSE(is_taken<Point, Move>());
  CHECK_FALSE(is_taken<std::vector<Point>, std::vector<Move>>());
  CHECK_FALSE(is_taken<std::map<int, double>, std::map<int, std::int64_t>>());
  CHECK_FALSE(is_taken<std::chrono::seconds, std::chrono::milliseconds>());
  CHECK_FALSE(is_taken<std::variant<int, float>, std::variant<int, std::int32_t>>());
  CHECK_FALSE(is_taken<std::optional<double>, std::optional<std::int64_t>>());
  CHECK_FALSE(is_taken<std::array<float, 2>, std::array<std::int32_t, 2>>());
  CHECK(is_taken<Point, NamedPoint>());
  CHECK(is_taken<NamedPoint, std::pair<double, double>>());
  CHECK(is_taken<Derived, std::tuple<double, double>>());
  CHECK(is_taken<std::vector<int>, std::list<int>>());
  CHECK(is_taken<std::set<int>, std::vector<int>>());
  CHECK(is_taken<Backend, std::uint16_t>());
  CHECK(is_taken<long, std::int64_t>());
  CHECK(is_taken<Tree, Tree>());
  CHECK_FALSE(is_taken<Tree, std::vector<int>>());
}

TEST_CASE("a schema id takes the place of the fields") {
  CHECK(is_taken<Evolving<1>, Evolving<2>>());
  CHECK(is_taken<std::vector<Evolving<1>>, std::vector<Evolving<2>>>());
  CHECK_FALSE(is_taken<Evolving<1>, std::int32_t>());
}

TEST_CASE("the fingerprint of a type is what docs/semantics.md says") {
  CHECK(detail::cereal_form<Plan>() ==
        "i4bu2[[c][u8]f8][[c][i2]]?[c][u8]f8{i4|[c]|[c][u8]f8|}u1f4[c]i8@1/1000;[b]ci8");
  CHECK(detail::cereal_form<Tree>() == "[^1;]");
  CHECK(detail::cereal_form<Evolving<1>>() == "#7;");
  CHECK(detail::cereal_form<std::array<std::int32_t, 3>>() == "(3)i4");
  CHECK(detail::fingerprint_of("i4") == 0x08b6fe07b55be930);
}

struct Throwing {
  template <class Archive>
  void serialize(Archive&) {
    throw 7;
  }
};

TEST_CASE("what an object's serialize throws stops at the codec") {
  CHECK(CerealCodec::encode(Throwing{}).error().code == ErrorCode::codec_failure);
  CHECK(cereal_refusal<Throwing>(std::string_view("\x01", 1)) == ErrorCode::codec_failure);
}

TEST_CASE("flipped bytes give an object or an error, nothing else") {
  const std::string good = encoded(sample_plan());
  std::mt19937 random(20261121);
  std::size_t decoded_count = 0;
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes = good;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int flip = 0; flip < flips; ++flip) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const std::uint64_t before = allocated().bytes;
    if (CerealCodec::decode<Plan>(bytes)) ++decoded_count;
    CHECK(allocated().bytes - before < 64 * 1024);
  }
  CHECK(decoded_count > 0);
}

}  // namespace
}  // namespace muster::test
