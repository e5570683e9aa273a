#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "server/tcpstore/request_assembler.h"
#include "support/tcpstore_bytes.h"

// Requests of TCPStore's are put together from pieces, and take no more memory than has come.

namespace muster::test::tcpstore {
namespace {

using server::tcpstore::Dialect;
using server::tcpstore::Request;
using server::tcpstore::RequestAssembler;
using server::tcpstore::RequestLimits;

constexpr std::uint64_t any_bytes = 1U << 30;
constexpr RequestLimits wide_limits{1000, 1U << 24, 1U << 16};

struct Pieces {
  explicit Pieces(std::uint64_t quota_bytes = any_bytes)
      : quota(quota_bytes), requests(quota, Dialect::newest, wide_limits) {}

  /// Requests that are whole, each as one line.
  std::vector<std::string> give(std::string_view bytes) {
    requests.give(bytes);
    return cut();
  }
  std::vector<std::string> cut() {
    std::vector<std::string> lines;
    for (;;) {
      const bool had_part_only = requests.has_part_only();
      const auto size = requests.next(request);
      REQUIRE(size.has_value());
      if (*size == 0) break;
      CHECK_FALSE(had_part_only);
      std::string line(name_of(request.command));
      for (const std::string_view key : request.keys) line += " " + std::string(key);
      for (const std::string_view value : request.values) {
        line += " " + std::to_string(value.size()) + ":" + std::string(value.substr(0, 3));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  /// In pieces of at most so many bytes, where there is room for them, if there is.
  std::vector<std::string> give_in_pieces(std::string_view bytes, std::size_t piece_bytes) {
    std::vector<std::string> lines;
    while (!bytes.empty()) {
      const std::span<char> room = requests.room();
      std::size_t count = std::min(bytes.size(), piece_bytes);
      std::string_view piece = bytes.substr(0, count);
      if (!room.empty()) {
        count = std::min(count, room.size());
        std::memcpy(room.data(), bytes.data(), count);
        piece = {room.data(), count};
        roomed_bytes += count;
      }
      const std::vector<std::string> more = give(piece);
      lines.insert(lines.end(), more.begin(), more.end());
      bytes.remove_prefix(count);
    }
    return lines;
  }

  core::Quota quota;
  RequestAssembler requests;
  Request request;
  std::size_t roomed_bytes = 0;
};

TEST_CASE("wherever a stream of TCPStore's requests is cut, the same requests come out") {
  const std::string bytes = validate + ping(7) + set("/a", std::string(2000, 'x')) +
                            multi_set({{"/b", "1"}, {"/c", ""}}) + list_keys +
                            compare_set("/a", "", "2") + wait({"/a", "/b", "/c"}) + cancel_wait;
  Pieces at_once;
  const std::vector<std::string> expected = at_once.give(bytes);
  REQUIRE(expected.size() == 8);
  CHECK(expected[2] == "SET /a 2000:xxx");
  CHECK(expected[5] == "COMPARE_SET /a 0: 1:2");
  CHECK(at_once.quota.used_bytes() == 0);
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Pieces pieces;
    std::vector<std::string> lines = pieces.give(std::string_view(bytes).substr(0, cut));
    const std::vector<std::string> rest = pieces.give(std::string_view(bytes).substr(cut));
    lines.insert(lines.end(), rest.begin(), rest.end());
    REQUIRE(lines == expected);
    CHECK(pieces.quota.used_bytes() == 0);
  }
  for (const std::size_t piece_bytes : {1U, 2U, 3U, 7U, 100U}) {
    Pieces pieces;
    CHECK(pieces.give_in_pieces(bytes, piece_bytes) == expected);
    CHECK(pieces.quota.used_bytes() == 0);
  }
}

TEST_CASE("requests of TCPStore's that are kept come later, and one that is put back once more") {
  const std::string bytes = validate + get("/1") + get("/2") + get("/3");
  Pieces pieces;
  pieces.requests.give(bytes);
  for (int count = 0; count < 2; ++count) REQUIRE(pieces.requests.next(pieces.request).value());
  CHECK(pieces.request.keys[0] == "/1");
  pieces.requests.put_back();
  pieces.requests.keep();
  CHECK(pieces.requests.stored_bytes() == 3 * get("/1").size());
  const std::string more = get("/4");
  pieces.requests.give(more);
  pieces.requests.keep();
  pieces.requests.give({});
  REQUIRE(pieces.requests.next(pieces.request).value());
  CHECK(pieces.request.keys[0] == "/1");
  pieces.requests.put_back();
  pieces.requests.keep();
  pieces.requests.give({});
  CHECK(pieces.cut() == std::vector<std::string>{"GET /1", "GET /2", "GET /3", "GET /4"});
  CHECK(pieces.requests.empty());
  CHECK(pieces.quota.used_bytes() == 0);
}

TEST_CASE("a length that TCPStore's clients declare takes no memory, what has come does") {
  Pieces pieces;
  const std::string bytes = validate + set("/a", std::string(10'000'000, 'x'));
  const std::string_view view = bytes;
  CHECK(pieces.give(view.substr(0, 100)).size() == 1);
  CHECK(pieces.quota.used_bytes() <= 4096);
  CHECK(pieces.give(view.substr(100, 100'000)).empty());
  CHECK(pieces.quota.used_bytes() >= 100'000);
  CHECK(pieces.quota.used_bytes() <= 220'000);
  CHECK(pieces.give(view.substr(100'100)) == std::vector<std::string>{"SET /a 10000000:xxx"});
  CHECK(pieces.cut().empty());
  CHECK(pieces.quota.used_bytes() == 0);

  Pieces listing;
  CHECK(listing.give(validate + command(6) + number(65536)).size() == 1);
  CHECK(listing.quota.used_bytes() <= 4096);
}

TEST_CASE("a long value of TCPStore's is read to where it stays, and taken over from there") {
  Pieces pieces;
  pieces.give(validate);
  const std::string value(900'000, 'v');
  const std::string bytes = set("/a", value) + set("/b", "next");
  std::string_view rest = bytes;
  while (rest.size() > 64 * 1024) {
    CHECK(pieces.give_in_pieces(rest.substr(0, 64 * 1024), 64 * 1024).empty());
    rest.remove_prefix(64 * 1024);
  }
  CHECK(pieces.roomed_bytes > 700'000);
  CHECK(pieces.quota.used_bytes() < 1'000'000);
  pieces.requests.give(rest);
  REQUIRE(pieces.requests.next(pieces.request).value());
  core::ChargedMemory* const memory = pieces.requests.memory_of_last();
  REQUIRE(memory != nullptr);
  const std::string_view there = pieces.request.values[0];
  CHECK(memory->is_mostly(there));
  core::Payload kept = memory->take_over(pieces.quota, there, core::Charging::normal);
  REQUIRE(kept != nullptr);
  CHECK(kept->view() == value);
  CHECK(kept->view().data() == there.data());
  CHECK(pieces.cut() == std::vector<std::string>{"SET /b 4:nex"});
  kept.reset();
  CHECK(pieces.quota.used_bytes() == 0);
}

TEST_CASE("a request of TCPStore's for which there is no memory is refused") {
  Pieces pieces(100'000);
  pieces.give(validate);
  const std::string bytes = set("/a", std::string(500'000, 'x'));
  Result<std::size_t> size = 0;
  std::size_t come = 0;
  for (; come < bytes.size() && size.has_value(); come += 10'000) {
    pieces.requests.give(std::string_view(bytes).substr(come, 10'000));
    size = pieces.requests.next(pieces.request);
  }
  REQUIRE_FALSE(size.has_value());
  CHECK(size.error().code == ErrorCode::resource_exhausted);
  CHECK(come < 200'000);
  CHECK(pieces.quota.used_bytes() <= 100'000);
}

TEST_CASE("what is stored of TCPStore's requests is given back with their connection") {
  core::Quota quota(any_bytes);
  {
    RequestAssembler requests(quota, Dialect::newest, wide_limits);
    const std::string bytes = validate + set("/a", std::string(50'000, 'x'));
    requests.give(std::string_view(bytes).substr(0, 40'000));
    Request request;
    while (requests.next(request).value() != 0) continue;
    CHECK(quota.used_bytes() >= 40'000 - 5);
  }
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("all bytes of one request of TCPStore's together have a limit") {
  RequestLimits limits = wide_limits;
  limits.request_bytes_max = 100;
  core::Quota quota(any_bytes);
  Request request;
  const auto taken = [&](const std::string& bytes) {
    RequestAssembler requests(quota, Dialect::newest, limits);
    const std::string said = validate + bytes;
    requests.give(said);
    REQUIRE(requests.next(request).value());
    const auto size = requests.next(request);
    if (!size) CHECK(size.error().code == ErrorCode::too_large);
    return size.has_value() && *size == bytes.size();
  };
  CHECK(taken(set("/a", std::string(81, 'v'))));
  CHECK_FALSE(taken(set("/a", std::string(82, 'v'))));
  const std::string half(33, 'k');
  CHECK(taken(check({half, half})));
  CHECK_FALSE(taken(check({half, half, half})));
}

}  // namespace
}  // namespace muster::test::tcpstore
