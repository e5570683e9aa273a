#include "client/group/round_values.h"

#include <utility>

#include "client/decode.h"
#include "client/failure.h"

namespace muster::client {
namespace {

Result<wire::RoundReply> reply_with(std::string_view body, std::size_t count) {
  auto reply = wire::decode_body<wire::ReplyTo<wire::CollectiveCall>>(body);
  if (!reply || reply->values.size() == count) return reply;
  Error error = failure(ErrorCode::protocol_error,
                        "the server's answer has " + std::to_string(reply->values.size()) +
                            " values where " + std::to_string(count) + " are due");
  return error;
}

}  // namespace

Result<std::vector<std::string>> values_of(std::string_view body, std::size_t count) {
  auto reply = reply_with(body, count);
  if (!reply) return std::move(reply).error();
  return std::vector<std::string>(reply->values.begin(), reply->values.end());
}

Result<std::string> value_of(std::string body, std::optional<std::string> own) {
  auto reply = reply_with(body, own ? 0 : 1);
  if (!reply) return std::move(reply).error();
  if (own) return *std::move(own);
  return cut_out(body, reply->values.front());
}

}  // namespace muster::client
