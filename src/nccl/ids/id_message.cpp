#include "nccl/ids/id_message.h"

#include <charconv>

#include "client/failure.h"
#include "muster/codec_raw.h"

namespace muster::nccl_internal {
namespace {

constexpr char mark_of_id = 'i';
constexpr char mark_of_failure = 'f';

Error malformed_id_message() {
  return client::failure(ErrorCode::protocol_error,
                         "what rank 0 sent is no NCCL id, nor why there is none");
}

/// Takes a decimal number and the blank behind it from the front of `text`.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()) + 1);
  return true;
}

}  // namespace

std::string encode_id_message(const Result<nccl::UniqueId>& id) {
  if (id) return mark_of_id + std::string(id->data(), id->size());
  const Error& error = id.error();
  return mark_of_failure + std::to_string(static_cast<unsigned>(error.code)) + ' ' +
         std::to_string(error.actual) + ' ' + error.detail;
}

Result<nccl::UniqueId> decode_id_message(std::string_view bytes) {
  if (bytes.empty()) return malformed_id_message();
  const char mark = bytes.front();
  bytes.remove_prefix(1);
  if (mark == mark_of_id) {
    auto id = RawCodec::decode<nccl::UniqueId>(bytes);
    return id ? id : malformed_id_message();
  }
  std::uint16_t code = 0;
  std::uint64_t actual = 0;
  if (mark != mark_of_failure || !take_number(bytes, code) || !take_number(bytes, actual)) {
    return malformed_id_message();
  }
  Error error = client::failure(static_cast<ErrorCode>(code), std::string(bytes));
  error.actual = actual;
  return error;
}

}  // namespace muster::nccl_internal
