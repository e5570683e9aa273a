#include "server/peer/frame_assembler.h"

#include <cstring>

#include <doctest/doctest.h>

#include "wire/request.h"

namespace {

using muster::ErrorCode;
using muster::core::Quota;
using muster::server::FrameAssembler;
namespace wire = muster::wire;

constexpr std::uint32_t body_bytes_max = 1U << 20;
constexpr std::uint64_t plenty = 1U << 30;

std::string set_request(std::uint64_t id, const std::string& value) {
  wire::Request request;
  request.id = id;
  request.acknowledged = {id + 1000};
  request.body = wire::Set{"key", value, {}, false, false};
  std::string bytes;
  wire::append_request(bytes, request);
  return bytes;
}

/// All frames that can be cut now, as their ids and the sizes of their bodies.
std::vector<std::pair<std::uint64_t, std::size_t>> cut_all(FrameAssembler& frames) {
  std::vector<std::pair<std::uint64_t, std::size_t>> found;
  for (;;) {
    auto next = frames.next();
    REQUIRE(next);
    const auto* const frame = std::get_if<wire::Frame>(&*next);
    if (frame == nullptr) {
      CHECK(std::holds_alternative<FrameAssembler::Incomplete>(*next));
      return found;
    }
    found.emplace_back(frame->header.id, frame->body.size());
  }
}

TEST_CASE("frames within one piece are cut where they lie, and nothing is stored") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(1, "a") + set_request(2, "bb") + set_request(3, "");
  frames.give(bytes);
  const auto found = cut_all(frames);
  REQUIRE(found.size() == 3);
  CHECK(found[2].first == 3);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("wherever the bytes are cut, the same frames come out") {
  const std::string bytes =
      set_request(1, "abc") + set_request(2, std::string(3000, 'x')) + set_request(3, "z");
  Quota quota(plenty);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
    frames.give(std::string_view(bytes).substr(0, cut));
    auto found = cut_all(frames);
    frames.give(std::string_view(bytes).substr(cut));
    const auto rest = cut_all(frames);
    found.insert(found.end(), rest.begin(), rest.end());
    REQUIRE(found.size() == 3);
    CHECK(found[1].second > 3000);
    CHECK(quota.used_bytes() == 0);
  }
}

TEST_CASE("frames that come byte by byte are put together") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(1, std::string(500, 'x')) + set_request(2, "b");
  std::size_t count = 0;
  for (const char byte : bytes) {
    frames.give({&byte, 1});
    count += cut_all(frames).size();
  }
  CHECK(count == 2);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("memory is taken for what has come, not for what was declared") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(1, std::string(900'000, 'x'));
  frames.give(std::string_view(bytes).substr(0, 100));
  CHECK(cut_all(frames).empty());
  CHECK(quota.used_bytes() <= 2048);
  frames.give(std::string_view(bytes).substr(100, 50'000));
  CHECK(cut_all(frames).empty());
  CHECK(quota.used_bytes() >= 50'000);
  CHECK(quota.used_bytes() <= 110'000);
  frames.give(std::string_view(bytes).substr(50'100));
  CHECK(cut_all(frames).size() == 1);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("a frame that declares too much is refused on its header alone") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {1000, 1000});
  const std::string bytes = set_request(1, std::string(2000, 'x')).substr(0, 16);
  for (const char byte : bytes.substr(0, 15)) {
    frames.give({&byte, 1});
    CHECK(cut_all(frames).empty());
  }
  frames.give(std::string_view(bytes).substr(15));
  const auto next = frames.next();
  REQUIRE_FALSE(next);
  CHECK(next.error().code == ErrorCode::too_large);
}

TEST_CASE("a write that finds no memory is reported once and skipped; what follows is in step") {
  Quota quota(100'000);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(7, std::string(500'000, 'x')) + set_request(8, "small");
  std::size_t unstorable_count = 0;
  std::vector<std::uint64_t> found;
  for (std::size_t at = 0; at < bytes.size(); at += 10'000) {
    frames.give(std::string_view(bytes).substr(at, 10'000));
    for (;;) {
      auto next = frames.next();
      REQUIRE(next);
      if (const auto* frame = std::get_if<wire::Frame>(&*next)) {
        found.push_back(frame->header.id);
      } else if (const auto* skipped = std::get_if<FrameAssembler::Unstorable>(&*next)) {
        ++unstorable_count;
        CHECK(skipped->header.id == 7);
        CHECK(skipped->why.limit == 100'000);
        CHECK(skipped->acknowledged == std::vector<std::uint64_t>{1007});
      } else {
        break;
      }
    }
  }
  CHECK(unstorable_count == 1);
  CHECK(found == std::vector<std::uint64_t>{8});
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("what acknowledges is taken although memory is full, but not at any length") {
  Quota quota(1000);
  quota.charge_always(1200);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  std::string bytes;
  wire::append_ids(bytes, wire::FrameType::acknowledge, 0, std::vector<std::uint64_t>(2'000, 5));
  for (std::size_t at = 0; at < bytes.size(); at += 5'000) {
    frames.give(std::string_view(bytes).substr(at, 5'000));
    const bool is_last = at + 5'000 >= bytes.size();
    CHECK(cut_all(frames).size() == (is_last ? 1 : 0));
  }
  CHECK(quota.used_bytes() == 1200);
  std::string longer;
  wire::append_ids(longer, wire::FrameType::acknowledge, 0, std::vector<std::uint64_t>(20'000, 5));
  frames.give(std::string_view(longer).substr(0, 50'000));
  const auto next = frames.next();
  REQUIRE_FALSE(next);
  CHECK(next.error().code == ErrorCode::resource_exhausted);
}

TEST_CASE("what reads goes on for a while when memory is full, and only within what it can need") {
  Quota quota(100'000);
  quota.charge_always(100'000);
  wire::Request request;
  request.id = 5;
  const std::string key(30'000, 'k');
  request.body = wire::Get{key};
  std::string get;
  wire::append_request(get, request);
  const auto outcome = [&](std::uint32_t essential_bytes_max) {
    FrameAssembler frames(quota, {body_bytes_max, essential_bytes_max});
    frames.give(std::string_view(get).substr(0, 20'000));
    auto next = frames.next();
    REQUIRE(next);
    if (std::holds_alternative<FrameAssembler::Unstorable>(*next)) return std::string("refused");
    frames.give(std::string_view(get).substr(20'000));
    next = frames.next();
    REQUIRE(next);
    return std::string(std::holds_alternative<wire::Frame>(*next) ? "taken" : "refused");
  };
  CHECK(outcome(1U << 20) == "refused");  // an eighth of the limit is less than the key
  quota.release(50'000);
  CHECK(outcome(1U << 20) == "taken");
  quota.charge_always(40'000);
  CHECK(outcome(10'000) == "refused");
  quota.release(90'000);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("a frame that is no request may not declare more than ids take") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, 10'000});
  std::string bytes;
  wire::append_ids(bytes, wire::FrameType::acknowledge, 0, std::vector<std::uint64_t>(2'000, 5));
  frames.give(std::string_view(bytes).substr(0, 5'000));
  const auto next = frames.next();
  REQUIRE_FALSE(next);
  CHECK(next.error().code == ErrorCode::too_large);
  CHECK(next.error().limit == 10'000);
}

TEST_CASE("frames that are kept for later come out later, before newer ones") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string first = set_request(1, "a") + set_request(2, "b") + set_request(3, "c");
  frames.give(first);
  REQUIRE(frames.next());
  frames.keep();
  CHECK(frames.stored_bytes() > 0);
  const std::string second = set_request(4, "d");
  frames.give(std::string_view(second).substr(0, 10));
  frames.keep();
  frames.give(std::string_view(second).substr(10));
  const auto found = cut_all(frames);
  REQUIRE(found.size() == 3);
  CHECK(found[0].first == 2);
  CHECK(found[2].first == 4);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("the rest of a write that found no memory is dropped, not kept for later") {
  Quota quota(100'000);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(7, std::string(500'000, 'x')) + set_request(8, "small");
  const std::size_t half = 250'000;
  frames.give(std::string_view(bytes).substr(0, half));
  const auto next = frames.next();
  REQUIRE(next);
  REQUIRE(std::holds_alternative<FrameAssembler::Unstorable>(*next));
  // The client is slow to take its replies: what it sends now is for later.
  frames.give(std::string_view(bytes).substr(half, 100'000));
  frames.keep();
  CHECK(frames.stored_bytes() == 0);
  frames.give(std::string_view(bytes).substr(half + 100'000));
  frames.keep();
  frames.give({});
  const auto found = cut_all(frames);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == 8);
  CHECK(quota.used_bytes() == 0);
}

/// Gives `bytes` piece by piece, into the assembler's room where there is some.
///
/// returns  how many of them went there
std::size_t give_in_pieces(FrameAssembler& frames, std::string_view bytes, std::size_t piece_max) {
  std::size_t roomed_bytes = 0;
  while (!bytes.empty()) {
    const std::span<char> room = frames.room();
    std::size_t count = std::min(bytes.size(), piece_max);
    if (room.empty()) {
      frames.give(bytes.substr(0, count));
    } else {
      count = std::min(count, room.size());
      std::memcpy(room.data(), bytes.data(), count);
      frames.give({room.data(), count});
      roomed_bytes += count;
    }
    bytes.remove_prefix(count);
    if (!bytes.empty()) CHECK(cut_all(frames).empty());
  }
  return roomed_bytes;
}

TEST_CASE("a long frame is read to where it is stored, and may be taken over from there") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string value(900'000, 'x');
  CHECK(give_in_pieces(frames, set_request(1, value), 64 * 1024) > 800'000);
  CHECK(quota.used_bytes() < 902'000);
  const auto next = frames.next();
  REQUIRE(next);
  const auto* const frame = std::get_if<wire::Frame>(&*next);
  REQUIRE(frame != nullptr);
  CHECK(frame->header.id == 1);
  muster::core::ChargedMemory* const memory = frames.memory_of_last();
  REQUIRE(memory != nullptr);
  const std::string_view body = frame->body;
  CHECK(memory->is_mostly(body));
  muster::core::Payload kept = memory->take_over(quota, body, muster::core::Charging::normal);
  REQUIRE(kept != nullptr);
  CHECK(kept->view().find(value) != std::string_view::npos);
  CHECK(cut_all(frames).empty());
  CHECK(frames.room().empty());
  const std::string another = set_request(2, std::string(900'000, 'y'));
  CHECK(give_in_pieces(frames, another, 100'000) > 700'000);
  CHECK(cut_all(frames).size() == 1);
  CHECK(kept->view().find(value) != std::string_view::npos);
  kept.reset();
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("memory in which more than the frame lies is not handed over") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string both = set_request(1, std::string(5000, 'x')) + set_request(2, "b");
  frames.give(both);
  frames.keep();
  const auto next = frames.next();
  REQUIRE(next);
  REQUIRE(std::holds_alternative<wire::Frame>(*next));
  CHECK(frames.memory_of_last() == nullptr);
  CHECK(cut_all(frames).size() == 1);
  const std::string one = set_request(3, "lies in the piece");
  frames.give(one);
  REQUIRE(frames.next());
  CHECK(frames.memory_of_last() == nullptr);
}

TEST_CASE("there is no room for what was but declared, for what ends soon, and without memory") {
  Quota quota(plenty);
  FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
  const std::string bytes = set_request(1, std::string(900'000, 'x'));
  frames.give(std::string_view(bytes).substr(0, 100));
  CHECK(cut_all(frames).empty());
  CHECK(frames.room().empty());
  frames.give(std::string_view(bytes).substr(100, bytes.size() - 200));
  CHECK(cut_all(frames).empty());
  CHECK(frames.room().empty());

  Quota small(70'000);
  FrameAssembler poor(small, {body_bytes_max, body_bytes_max});
  poor.give(std::string_view(bytes).substr(0, 60'000));
  CHECK(cut_all(poor).empty());
  CHECK(poor.room().empty());
  poor.give(std::string_view(bytes).substr(60'000));
  const auto next = poor.next();
  REQUIRE(next);
  CHECK(std::holds_alternative<FrameAssembler::Unstorable>(*next));
}

TEST_CASE("what was stored is given back to the quota when the peer goes") {
  Quota quota(plenty);
  {
    FrameAssembler frames(quota, {body_bytes_max, body_bytes_max});
    const std::string bytes = set_request(1, std::string(50'000, 'x'));
    frames.give(std::string_view(bytes).substr(0, 40'000));
    CHECK(cut_all(frames).empty());
    CHECK(quota.used_bytes() >= 40'000);
  }
  CHECK(quota.used_bytes() == 0);
}

}  // namespace
