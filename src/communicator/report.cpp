#include "communicator/report.h"

#include "client/failure.h"

namespace muster::communicator {
namespace {

constexpr char version_of_format = 1;

}  // namespace

void append_trouble(std::string& out, const std::optional<Error>& trouble) {
  append_number(out,
                static_cast<std::uint16_t>(trouble ? static_cast<unsigned>(trouble->code) : 0));
  if (!trouble) return;
  append_number(out, trouble->actual);
  append_number(out, trouble->limit);
  out += trouble->detail;
}

void Cursor::take(void* to, std::size_t count) {
  if (bytes_.size() < count) is_good_ = false;
  if (!is_good_) return;
  std::memcpy(to, bytes_.data(), count);
  bytes_.remove_prefix(count);
}

std::optional<Error> Cursor::trouble() {
  const auto code = number<std::uint16_t>();
  if (code == 0) return std::nullopt;
  const auto actual = number<std::uint64_t>();
  const auto limit = number<std::uint64_t>();
  Error error = client::failure(static_cast<ErrorCode>(code), std::string(rest()));
  error.actual = actual;
  error.limit = limit;
  return error;
}

Error no_part_of_making() {
  return client::failure(ErrorCode::protocol_error,
                         "what a rank sent is no part of a communicator's making");
}

std::string encode_report(const std::optional<Error>& trouble) {
  std::string out(1, version_of_format);
  append_trouble(out, trouble);
  return out;
}

Result<std::optional<Error>> decode_report(std::string_view bytes) {
  Cursor cursor(bytes);
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  std::optional<Error> trouble = cursor.trouble();
  if (!cursor.is_good() || version != version_of_format) return no_part_of_making();
  return trouble;
}

std::uint64_t digest_of(std::string_view bytes) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace muster::communicator
