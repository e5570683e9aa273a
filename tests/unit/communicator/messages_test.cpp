#include "communicator/messages.h"

#include <doctest/doctest.h>

#include "client/failure.h"

// What ranks tell each other at the end of a making.

namespace muster::communicator {
namespace {

TEST_CASE("a report travels as it is; what is none is a protocol error") {
  const std::string fine = encode_vote(std::nullopt);
  CHECK_FALSE(decode_vote(fine)->has_value());
  CHECK(decode_vote(fine + "x").error().code == ErrorCode::protocol_error);
  CHECK(decode_vote("").error().code == ErrorCode::protocol_error);
  const auto report = decode_vote(encode_vote(client::failure(ErrorCode::nccl, "it said so")));
  REQUIRE(report.has_value());
  CHECK((*report)->detail == "it said so");
  CHECK((*report)->code == ErrorCode::nccl);
}

TEST_CASE("a cursor that has run out stays bad") {
  MessageReader cursor("\1\2\3");
  CHECK(cursor.number<std::uint16_t>() == 0x0201);
  CHECK(cursor.number<std::uint32_t>() == 0);
  CHECK_FALSE(cursor.is_good());
  CHECK(cursor.number<std::uint8_t>() == 0);
  CHECK_FALSE(cursor.is_good());
}

}  // namespace
}  // namespace muster::communicator
