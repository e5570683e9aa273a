#include "gloo/presence.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/failure.h"

namespace muster::gloo {
namespace {

std::vector<Presence> all_of(int world_size) {
  std::vector<Presence> all;
  for (int rank = 0; rank < world_size; ++rank) {
    Presence presence;
    presence.rank = rank;
    presence.members = 77;
    presence.process.bytes[3] = static_cast<std::uint8_t>(rank);
    presence.terms = 5;
    presence.version = 500;
    presence.host = 9;
    presence.family = 4;
    presence.is_loopback = true;
    presence.addresses.resize(static_cast<std::size_t>(world_size), "somewhere");
    all.push_back(presence);
  }
  return all;
}

std::vector<int> at_fault(const std::vector<Presence>& all) {
  const auto verdict = verdict_on(all);
  REQUIRE(verdict);
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (verdict->is_at_fault(rank)) ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("a presence is what it was when it has been sent") {
  Presence presence = all_of(3).back();
  presence.addresses[2].clear();
  const auto decoded = decode_presence(encode(presence), 3);
  REQUIRE(decoded);
  CHECK(decoded->rank == 2);
  CHECK(decoded->members == 77);
  CHECK(decoded->process == presence.process);
  CHECK(decoded->terms == 5);
  CHECK(decoded->version == 500);
  CHECK(decoded->host == 9);
  CHECK(decoded->family == 4);
  CHECK(decoded->is_loopback);
  CHECK(decoded->addresses == presence.addresses);
  CHECK_FALSE(decoded->trouble);
}

TEST_CASE("a presence brings why its rank cannot take part") {
  Presence presence;
  presence.rank = 1;
  presence.trouble = client::failure(ErrorCode::gloo, "what it said");
  const auto decoded = decode_presence(encode(presence), 2);
  REQUIRE(decoded);
  REQUIRE(decoded->trouble);
  CHECK(decoded->trouble->code == ErrorCode::gloo);
  CHECK(decoded->trouble->detail == "what it said");
}

TEST_CASE("what is no presence is a protocol error") {
  const std::string whole = encode(all_of(2).front());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const auto decoded = decode_presence(whole.substr(0, size), 2);
    // What is cut off from the end may be the number that says that there is no trouble.
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == ErrorCode::protocol_error);
  }
  CHECK_FALSE(decode_presence(whole + "x", 2));
  CHECK_FALSE(decode_presence(whole, 3));
  std::string of_another_version = whole;
  of_another_version[0] = 2;
  CHECK_FALSE(decode_presence(of_another_version, 2));
  Presence without_address = all_of(2).front();
  without_address.addresses.clear();
  CHECK_FALSE(decode_presence(encode(without_address), 2));
}

TEST_CASE("ranks that can reach each other get a communicator") {
  auto all = all_of(3);
  CHECK_FALSE(verdict_on(all));
  for (Presence& presence : all) presence.is_loopback = false;
  all[1].host = 10;
  CHECK_FALSE(verdict_on(all));
}

TEST_CASE("who cannot take part, or differs, is at fault") {
  auto all = all_of(4);
  all[1].is_loopback = false;
  all[1].host = 10;
  CHECK(at_fault(all) == std::vector<int>{0, 2, 3});
  all[2].family = 6;
  CHECK(at_fault(all) == std::vector<int>{2});
  all[3].version = 501;
  CHECK(at_fault(all) == std::vector<int>{3});
  all[1].members = 78;
  CHECK(at_fault(all) == std::vector<int>{1});
  all[2].trouble = client::failure(ErrorCode::gloo, "");
  CHECK(at_fault(all) == std::vector<int>{2});
}

}  // namespace
}  // namespace muster::gloo
