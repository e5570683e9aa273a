#include "wire/request.h"

#include <memory>

#include <doctest/doctest.h>

#include "base/time.h"
#include "support/decoded.h"
#include "wire/writer.h"

using namespace muster;
using namespace muster::wire;
using namespace std::chrono_literals;

namespace {

std::string bytes_of(const RequestBody& body, Duration timeout = 5s) {
  Request request;
  request.id = 7;
  request.timeout = timeout;
  request.acknowledged = {5};
  request.body = body;
  std::string bytes;
  append_request(bytes, request);
  return bytes;
}

Result<Request> decoded(std::string_view bytes) {
  const auto cut = cut_frame(bytes, 1U << 24);
  REQUIRE(cut.has_value());
  REQUIRE(cut->has_value());
  return test::decoded_request(**cut);
}

/// The request with `extra` at the end of its body.
std::string extended(std::string bytes, std::string_view extra) {
  bytes += extra;
  Writer(bytes).patch_u32(0, static_cast<std::uint32_t>(bytes.size() - frame_header_bytes));
  return bytes;
}

template <class Body>
Body round_trip(const Body& body) {
  static std::vector<std::unique_ptr<const std::string>> kept;  // the views point into them
  kept.push_back(std::make_unique<const std::string>(bytes_of(body)));
  const auto request = decoded(*kept.back());
  REQUIRE(request.has_value());
  CHECK(request->id == 7);
  CHECK(request->timeout == 5s);
  CHECK(request->acknowledged == std::vector<std::uint64_t>{5});
  REQUIRE(std::holds_alternative<Body>(request->body));
  return std::get<Body>(request->body);
}

}  // namespace

TEST_CASE("the fields of store requests come back as they were") {
  const Set set = round_trip(Set{"key", "value", 60s, true, true});
  CHECK(set.key == "key");
  CHECK(set.value == "value");
  CHECK(set.ttl == Ttl(60s));
  CHECK(set.only_if_absent);
  CHECK(set.bind_to_session);
  CHECK_FALSE(round_trip(Set{"key", "", std::nullopt, false, false}).ttl.has_value());

  const Add add = round_trip(Add{"n", -5});
  CHECK(add.delta == -5);
  CHECK_FALSE(round_trip(CompareSet{"k", std::nullopt, "v", {}}).expected.has_value());
  CHECK(round_trip(CompareSet{"k", "", "v", {}}).expected == std::string_view(""));
  CHECK(round_trip(Remove{{"a", "", "bc"}}).keys == std::vector<std::string_view>{"a", "", "bc"});
  const MultiSet multi = round_trip(MultiSet{{{"a", "1"}, {"b", "2"}}, 1us});
  REQUIRE(multi.entries.size() == 2);
  CHECK(multi.entries[1].key == "b");
  CHECK(multi.entries[1].value == "2");
  CHECK(multi.ttl == Ttl(1us));
  const List list = round_trip(List{ListKind::objects, "p/", ~0ULL, 9});
  CHECK(list.kind == ListKind::objects);
  CHECK(list.prefix == "p/");
  CHECK(list.cursor == ~0ULL);
  CHECK(list.count_max == 9);
}

TEST_CASE("the fields of group requests come back as they were") {
  const Join join = round_trip(Join{"tp0", 3, 8, 1h, true, "info", {"serve", "eval"}});
  CHECK(join.group == "tp0");
  CHECK(join.rank == 3);
  CHECK(join.world_size == 8);
  CHECK(join.data_expiration == 1h);
  CHECK(join.standby);
  CHECK(join.info == "info");
  REQUIRE(join.other_tenants.size() == 2);
  CHECK(join.other_tenants[1] == "eval");
  const Regroup regroup = round_trip(Regroup{7, 1, 13, 4, 3});
  CHECK(regroup.epoch == 7);
  CHECK(regroup.attempt == 1);
  CHECK(regroup.next_round == 13);
  CHECK(regroup.new_size == 4);
  CHECK(regroup.min_size == 3);
  const CollectiveCall call =
      round_trip(CollectiveCall{7, 12, Collective::scatter, 1, 2, {"a", "", "c"}});
  CHECK(call.collective == Collective::scatter);
  CHECK(call.root == 1);
  CHECK(call.codec == 2);
  CHECK(call.values == std::vector<std::string_view>{"a", "", "c"});
  const Send send = round_trip(Send{7, 1, 99, 3, 2, "object"});
  CHECK(send.destination == 1);
  CHECK(send.tag == 99);
  CHECK(send.sequence == 3);
  CHECK(send.value == "object");
  const Recover recover = round_trip(Recover{7, 12, {{1, 99}, {2, 0}}});
  REQUIRE(recover.streams.size() == 2);
  CHECK(recover.streams[0].destination == 1);
  CHECK(recover.streams[0].tag == 99);
  ReportDead report{{}, "gone"};
  report.process.bytes[3] = 9;
  CHECK(round_trip(report).process == report.process);
}

/// What decoding both into one request, one after the other, leaves of the second one.
template <class Body>
std::string decoded_behind(const Body& first, const Body& second) {
  Request request;
  for (const Body& body : {first, second}) {
    static std::vector<std::unique_ptr<const std::string>> kept;
    kept.push_back(std::make_unique<const std::string>(bytes_of(body)));
    const auto cut = cut_frame(*kept.back(), 1U << 24);
    REQUIRE(decode_request(**cut, request).has_value());
  }
  return bytes_of(request.body);
}

TEST_CASE("nothing of an earlier request is left in the one that is decoded behind it") {
  const auto leaves_nothing = [](const auto& first, const auto& second) {
    CHECK(decoded_behind(first, second) == bytes_of(second));
  };
  leaves_nothing(Set{"key", "value", 60s, true, true}, Set{"k", "", std::nullopt, false, false});
  leaves_nothing(CompareSet{"key", "old", "new", 3s}, CompareSet{"k", std::nullopt, "", {}});
  leaves_nothing(Remove{{"a", "b", "c"}}, Remove{{"d"}});
  leaves_nothing(MultiSet{{{"a", "1"}, {"b", "2"}}, 1us}, MultiSet{{}, std::nullopt});
  leaves_nothing(Join{"tp0", 3, 8, 1h, true, "info", {"serve", "eval"}},
                 Join{"dp", 0, 1, {}, false, {}, {}});
  leaves_nothing(CollectiveCall{7, 12, Collective::scatter, 1, 2, {"a", "", "c"}},
                 CollectiveCall{7, 13, Collective::barrier, 0, 0, {}});
  leaves_nothing(Recover{7, 12, {{1, 99}, {2, 0}}}, Recover{7, 13, {}});
  leaves_nothing(NameSpaces{"a"}, NameSpaces{std::nullopt});
}

TEST_CASE("a request put together from its encoded fields is the request") {
  const CompareSet body{"k", "old", "new", 3s};
  std::string fields_of_body;
  append_operation(fields_of_body, body);
  Request prefix;
  prefix.id = 7;
  prefix.timeout = 5s;
  prefix.acknowledged = {5};
  std::string bytes;
  append_request(bytes, prefix, wire::operation<wire::CompareSet>, fields_of_body);
  CHECK(bytes == bytes_of(body));
}

TEST_CASE("a timeout is rounded to nothing below zero and clamped to thirty days") {
  CHECK(decoded(bytes_of(Get{"k"}, Duration(-7)))->timeout == 0us);
  CHECK(decoded(bytes_of(Get{"k"}, base::timeout_max))->timeout == base::timeout_max);
  CHECK(decoded(bytes_of(Get{"k"}, Duration::max()))->timeout == base::timeout_max);
  std::string bytes = bytes_of(Get{"k"});
  bytes.replace(frame_header_bytes, 8, 8, '\xff');
  CHECK(decoded(bytes)->timeout == base::timeout_max);
}

TEST_CASE("a time to live may be longer than a timeout and is clamped to a century") {
  CHECK(round_trip(Touch{"k", 24h * 365}).ttl == Ttl(24h * 365));
  CHECK(round_trip(Touch{"k", Duration::max()}).ttl == Ttl(duration_max));
}

TEST_CASE("an unknown operation is unsupported, not a broken protocol") {
  const int behind_last = static_cast<int>(operation_facts.back().number) + 1;
  for (const int operation : {0, 15, 31, behind_last, 0xffff}) {
    std::string bytes = bytes_of(Get{"k"});
    bytes[6] = static_cast<char>(operation & 0xff);
    bytes[7] = static_cast<char>(operation >> 8);
    const auto request = decoded(bytes);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().code == ErrorCode::unsupported);
  }
}

TEST_CASE("unknown optional fields behind a request are skipped") {
  using namespace std::string_view_literals;
  const std::string two =
      extended(bytes_of(Get{"k"}), "\x63\x03\x00\x00\x00xyz\x64\x00\x00\x00\x00"sv);
  const auto request = decoded(two);
  REQUIRE(request.has_value());
  CHECK(std::get<Get>(request->body).key == "k");
  CHECK(decoded(extended(bytes_of(Status{}), "\x01\x00\x00\x00\x00"sv)).has_value());
}

TEST_CASE("an optional field that is cut off is a protocol error") {
  using namespace std::string_view_literals;
  const std::string_view field = "\x63\x03\x00\x00\x00xyz"sv;
  for (std::size_t size = 1; size < field.size(); ++size) {
    const auto request = decoded(extended(bytes_of(Get{"k"}), field.substr(0, size)));
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().code == ErrorCode::protocol_error);
  }
}

TEST_CASE("enums and bools that are none are protocol errors") {
  std::string collective = bytes_of(CollectiveCall{7, 1, Collective::barrier, 0, 0, {}});
  const std::size_t at = frame_header_bytes + 8 + 4 + 8 + 16;
  for (const int number : {0, 6, 255}) {
    collective[at] = static_cast<char>(number);
    CHECK(decoded(collective).error().code == ErrorCode::protocol_error);
  }
  std::string set = bytes_of(Set{"key", "value", std::nullopt, false, false});
  set.back() = 2;
  CHECK(decoded(set).error().code == ErrorCode::protocol_error);
}

TEST_CASE("a request without an id and a frame that is none are protocol errors") {
  std::string bytes = bytes_of(Get{"k"});
  bytes[8] = 0;
  CHECK(decoded(bytes).error().code == ErrorCode::protocol_error);
  std::string reply;
  append_frame(reply, {0, FrameType::reply, 2, 7}, "");
  CHECK(test::decoded_request(**cut_frame(reply, 10)).error().code == ErrorCode::protocol_error);
}

TEST_CASE("a recover asks for at most 65536 streams") {
  Recover recover;
  recover.streams.resize(streams_per_recover_max);
  CHECK(decoded(bytes_of(recover)).has_value());
  recover.streams.emplace_back();
  CHECK(decoded(bytes_of(recover)).error().code == ErrorCode::protocol_error);
}

TEST_CASE("every operation has a name of its own") {
  std::size_t count = 0;
  for (unsigned number = 0; number < 1000; ++number) {
    count += name_of(static_cast<Operation>(number)).empty() ? 0 : 1;
  }
  CHECK(count == operations_count);
  CHECK(name_of(wire::operation<wire::CompareSet>) == "compare_set");
  CHECK(name_of(Collective::all_gather) == "all_gather");
  CHECK(name_of(static_cast<Collective>(0)).empty());
}
