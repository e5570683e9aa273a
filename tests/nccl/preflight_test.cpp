#include "nccl/preflight.h"

#include <doctest/doctest.h>

#include "client/failure.h"

// What ranks tell each other before a communicator is made, and who is at fault.

namespace muster::nccl_internal {
namespace {

PreflightReport present(unsigned char device) {
  PreflightReport report;
  report.nccl_version = 22809;
  report.device_uuid.fill(device);
  report.members = 5;
  report.host = 7;
  report.terms = 9;
  report.process.bytes.fill(device);
  return report;
}

/// Ranks 0, 1 and so on, with these devices.
std::vector<PreflightReport> present_all(const std::vector<unsigned char>& devices) {
  std::vector<PreflightReport> all;
  for (const unsigned char device : devices) {
    all.push_back(present(device));
    all.back().rank = static_cast<int>(all.size()) - 1;
  }
  return all;
}

std::vector<int> at_fault(const communicator::Rejection& verdict, int world_size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    if (verdict.is_at_fault(rank)) ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("a presence travels as it is, with what is wrong or without") {
  for (const bool is_troubled : {false, true}) {
    PreflightReport sent = present(3);
    if (is_troubled) {
      sent.failure = client::failure(ErrorCode::no_device, "there is none");
      sent.failure->actual = 100;
    }
    const auto got = decode_preflight(encode(sent));
    REQUIRE(got);
    CHECK(got->rank == sent.rank);
    CHECK(got->members == sent.members);
    CHECK(got->nccl_version == sent.nccl_version);
    CHECK(got->device_uuid == sent.device_uuid);
    CHECK(got->host == sent.host);
    CHECK(got->terms == sent.terms);
    CHECK(got->process == sent.process);
    REQUIRE(got->failure.has_value() == is_troubled);
    if (!is_troubled) continue;
    CHECK(got->failure->code == ErrorCode::no_device);
    CHECK(got->failure->actual == 100);
    CHECK(got->failure->detail == "there is none");
  }
}

TEST_CASE("what is no presence is a protocol error") {
  const std::string good = encode(present(1));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(decode_preflight(good.substr(0, size)).error().code == ErrorCode::protocol_error);
  }
  CHECK(decode_preflight(good + "x").error().code == ErrorCode::protocol_error);
  CHECK(decode_preflight("\2" + good.substr(1)).error().code == ErrorCode::protocol_error);
}

TEST_CASE("ranks that agree and share nothing get a communicator") {
  CHECK_FALSE(find_rejection(present_all({1, 2, 3})));
}

TEST_CASE("who cannot take part is named before who differs, and who differs before who shares") {
  std::vector<PreflightReport> all = present_all({1, 1, 2, 3});
  auto verdict = find_rejection(all);
  REQUIRE(verdict);
  CHECK(verdict->error.code == ErrorCode::duplicate_device);
  CHECK(at_fault(*verdict, 4) == std::vector<int>{0, 1});

  all[3].nccl_version = 22703;
  verdict = find_rejection(all);
  CHECK(verdict->error.code == ErrorCode::mismatch);
  CHECK(verdict->error.detail.find("2.27.3") != std::string::npos);
  CHECK(at_fault(*verdict, 4) == std::vector<int>{3});

  all[2].failure = client::failure(ErrorCode::library_missing, "no libnccl");
  verdict = find_rejection(all);
  CHECK(verdict->error.code == ErrorCode::library_missing);
  CHECK(at_fault(*verdict, 4) == std::vector<int>{2});
}

TEST_CASE("the same device on another host, as NCCL sees it, is another one") {
  std::vector<PreflightReport> all = present_all({1, 1});
  all[1].host = 8;
  CHECK_FALSE(find_rejection(all));
  all[1].terms = 10;
  const auto verdict = find_rejection(all);
  REQUIRE(verdict);
  CHECK(verdict->error.code == ErrorCode::mismatch);
  CHECK(at_fault(*verdict, 2) == std::vector<int>{1});
}

TEST_CASE("who is in another epoch, or another rank than it has in the group, is named") {
  std::vector<PreflightReport> all = present_all({1, 2, 3});
  all[1].members = 8;
  auto verdict = find_rejection(all);
  REQUIRE(verdict);
  CHECK(verdict->error.code == ErrorCode::mismatch);
  CHECK(at_fault(*verdict, 3) == std::vector<int>{1});
  all[1].members = all[0].members;
  all[2].rank = 1;
  verdict = find_rejection(all);
  REQUIRE(verdict);
  CHECK(at_fault(*verdict, 3) == std::vector<int>{2});
}

}  // namespace
}  // namespace muster::nccl_internal
