#include "wire/frame.h"

#include <doctest/doctest.h>

#include "support/decoded.h"
#include "wire/request.h"

using namespace muster;
using namespace muster::wire;

namespace {

std::string frame_of(FrameType type, std::uint16_t code, std::uint64_t id, std::string_view body) {
  std::string out;
  append_frame(out, {0, type, code, id}, body);
  return out;
}

}  // namespace

TEST_CASE("a frame is cut with its header and body, and what follows is left alone") {
  const std::string bytes = frame_of(FrameType::reply, 21, 7, "body") + "next";
  const auto cut = cut_frame(bytes, 4);
  REQUIRE(cut.has_value());
  REQUIRE(cut->has_value());
  const Frame& frame = **cut;
  CHECK(frame.header.body_bytes == 4);
  CHECK(frame.header.type == FrameType::reply);
  CHECK(frame.header.code == 21);
  CHECK(frame.header.id == 7);
  CHECK(frame.body == "body");
  CHECK(frame.body.data() == bytes.data() + frame_header_bytes);
}

TEST_CASE("a frame that is not whole yet needs more bytes, wherever it is cut") {
  const std::string bytes = frame_of(FrameType::request, 2, 7, "body");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = cut_frame(std::string_view(bytes).substr(0, size), 4);
    REQUIRE(cut.has_value());
    CHECK_FALSE(cut->has_value());
  }
  CHECK(cut_frame(bytes, 4)->has_value());
}

TEST_CASE("a frame that declares more than allowed is refused on its header alone") {
  std::string bytes = frame_of(FrameType::request, 2, 7, "");
  bytes.replace(0, 4, "\xff\xff\xff\xff");
  const auto cut = cut_frame(bytes, 1000);
  REQUIRE_FALSE(cut.has_value());
  CHECK(cut.error().code == ErrorCode::too_large);
  CHECK(cut.error().actual == 0xffffffff);
  CHECK(cut.error().limit == 1000);
}

TEST_CASE("a frame of an unknown type is a protocol error") {
  std::string bytes = frame_of(FrameType::request, 2, 7, "");
  for (const unsigned type : {0U, 11U, 255U}) {
    bytes[4] = static_cast<char>(static_cast<unsigned char>(type));
    const auto cut = cut_frame(bytes, 1000);
    REQUIRE_FALSE(cut.has_value());
    CHECK(cut.error().code == ErrorCode::protocol_error);
  }
}

TEST_CASE("the flags of a frame are ignored") {
  std::string bytes = frame_of(FrameType::heartbeat, 0, 7, "");
  bytes[5] = '\xff';
  CHECK(cut_frame(bytes, 0)->has_value());
}

TEST_CASE("a body can be appended between the begin and the end of its frame") {
  std::string out = "before";
  const std::size_t begun_at = begin_frame(out, {0, FrameType::event, 3, 0});
  out += "body";
  end_frame(out, begun_at);
  CHECK(out == "before" + frame_of(FrameType::event, 3, 0, "body"));
}

TEST_CASE("frames of ids carry them in order, and a request its acknowledged ones") {
  for (const FrameType type : {FrameType::acknowledge, FrameType::abandon, FrameType::heartbeat}) {
    std::string bytes;
    append_ids(bytes, type, 42, {1, 1ULL << 63});
    const auto cut = cut_frame(bytes, 100);
    REQUIRE(cut->has_value());
    CHECK((*cut)->header.id == 42);
    const auto ids = test::decoded_ids(**cut);
    REQUIRE(ids.has_value());
    CHECK(*ids == std::vector<std::uint64_t>{1, 1ULL << 63});
  }
  Request request;
  request.id = 7;
  request.acknowledged = {5, 6};
  request.body = Get{"key"};
  std::string bytes;
  append_request(bytes, request);
  bytes[6] = '\x77';  // an operation that nobody knows
  const auto cut = cut_frame(bytes, 100);
  REQUIRE(cut->has_value());
  CHECK(test::decoded_request(**cut).error().code == ErrorCode::unsupported);
  CHECK(*test::decoded_ids(**cut) == std::vector<std::uint64_t>{5, 6});
}

TEST_CASE("a frame without ids, or with more than a frame may carry, is a protocol error") {
  const std::string reply = frame_of(FrameType::reply, 0, 7, std::string(4, '\0'));
  CHECK(test::decoded_ids(**cut_frame(reply, 100)).error().code == ErrorCode::protocol_error);
  std::string many;
  append_ids(many, FrameType::acknowledge, 0, std::vector<std::uint64_t>(ids_per_frame_max + 1, 9));
  const auto cut = cut_frame(many, 1U << 20);
  REQUIRE(cut->has_value());
  CHECK(test::decoded_ids(**cut).error().code == ErrorCode::protocol_error);
}
