#include "communicator/messages.h"

#include "client/failure.h"

namespace muster::communicator {
namespace {

constexpr char version_of_format = 1;

}  // namespace

void append_failure(std::string& out, const std::optional<Error>& failure) {
  append_number(out,
                static_cast<std::uint16_t>(failure ? static_cast<unsigned>(failure->code) : 0));
  if (!failure) return;
  append_number(out, failure->actual);
  append_number(out, failure->limit);
  out += failure->detail;
}

void MessageReader::take(void* to, std::size_t count) {
  if (bytes_.size() < count) is_good_ = false;
  if (!is_good_) return;
  std::memcpy(to, bytes_.data(), count);
  bytes_.remove_prefix(count);
}

std::optional<Error> MessageReader::failure() {
  const auto code = number<std::uint16_t>();
  if (code == 0) return std::nullopt;
  const auto actual = number<std::uint64_t>();
  const auto limit = number<std::uint64_t>();
  Error error = client::failure(static_cast<ErrorCode>(code), std::string(rest()));
  error.actual = actual;
  error.limit = limit;
  return error;
}

Error malformed_message() {
  return client::failure(
      ErrorCode::protocol_error,
      "a rank sent a message that does not belong to the creation of a communicator");
}

std::string encode_vote(const std::optional<Error>& failure) {
  std::string out(1, version_of_format);
  append_failure(out, failure);
  return out;
}

Result<std::optional<Error>> decode_vote(std::string_view bytes) {
  MessageReader cursor(bytes);
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  std::optional<Error> failure = cursor.failure();
  if (!cursor.is_good() || version != version_of_format) return malformed_message();
  return failure;
}

}  // namespace muster::communicator
