#include "gloo/preflight.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/failure.h"

namespace muster::gloo_internal {
namespace {

std::vector<PreflightReport> all_of(int world_size) {
  std::vector<PreflightReport> all;
  for (int rank = 0; rank < world_size; ++rank) {
    PreflightReport report;
    report.rank = rank;
    report.members = 77;
    report.process.bytes[3] = static_cast<std::uint8_t>(rank);
    report.terms = 5;
    report.version = 500;
    report.host = 9;
    report.family = 4;
    report.is_loopback = true;
    report.addresses.resize(static_cast<std::size_t>(world_size), "somewhere");
    all.push_back(report);
  }
  return all;
}

std::vector<int> at_fault(const std::vector<PreflightReport>& all) {
  const auto verdict = find_rejection(all);
  REQUIRE(verdict);
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (verdict->is_at_fault(rank)) ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("a presence is what it was when it has been sent") {
  PreflightReport report = all_of(3).back();
  report.addresses[2].clear();
  const auto decoded = decode_preflight(encode(report), 3);
  REQUIRE(decoded);
  CHECK(decoded->rank == 2);
  CHECK(decoded->members == 77);
  CHECK(decoded->process == report.process);
  CHECK(decoded->terms == 5);
  CHECK(decoded->version == 500);
  CHECK(decoded->host == 9);
  CHECK(decoded->family == 4);
  CHECK(decoded->is_loopback);
  CHECK(decoded->addresses == report.addresses);
  CHECK_FALSE(decoded->failure);
}

TEST_CASE("a presence brings why its rank cannot take part") {
  PreflightReport report;
  report.rank = 1;
  report.failure = client::failure(ErrorCode::gloo, "what it said");
  const auto decoded = decode_preflight(encode(report), 2);
  REQUIRE(decoded);
  REQUIRE(decoded->failure);
  CHECK(decoded->failure->code == ErrorCode::gloo);
  CHECK(decoded->failure->detail == "what it said");
}

TEST_CASE("what is no presence is a protocol error") {
  const std::string whole = encode(all_of(2).front());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const auto decoded = decode_preflight(whole.substr(0, size), 2);
    // What is cut off from the end may be the number that says that there is no trouble.
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == ErrorCode::protocol_error);
  }
  CHECK_FALSE(decode_preflight(whole + "x", 2));
  CHECK_FALSE(decode_preflight(whole, 3));
  std::string of_another_version = whole;
  of_another_version[0] = 2;
  CHECK_FALSE(decode_preflight(of_another_version, 2));
  PreflightReport without_address = all_of(2).front();
  without_address.addresses.clear();
  CHECK_FALSE(decode_preflight(encode(without_address), 2));
}

TEST_CASE("ranks that can reach each other get a communicator") {
  auto all = all_of(3);
  CHECK_FALSE(find_rejection(all));
  for (PreflightReport& report : all) report.is_loopback = false;
  all[1].host = 10;
  CHECK_FALSE(find_rejection(all));
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
  all[2].failure = client::failure(ErrorCode::gloo, "");
  CHECK(at_fault(all) == std::vector<int>{2});
}

}  // namespace
}  // namespace muster::gloo_internal
