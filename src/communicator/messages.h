#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/error.h"
#include "muster/result.h"

namespace muster::communicator {

// The wire form of the messages with which ranks agree on a communicator. Numbers are
// little-endian; docs/nccl.md describes every byte.

template <class Number>
void append_number(std::string& out, Number number) {
  for (std::size_t index = 0; index < sizeof number; ++index) {
    out.push_back(static_cast<char>(number >> (8 * index) & 0xff));
  }
}

/// Appends an error's code, `actual`, `limit` and `detail`; no error is code 0. It is the last
/// field of a message, because `detail` takes the rest.
void append_failure(std::string& out, const std::optional<Error>& failure);

/// Reads a message from its front. After a read beyond the end it stays bad.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  void take(void* to, std::size_t count);
  template <class Number>
  Number number() {
    unsigned char bytes[sizeof(Number)] = {};
    take(bytes, sizeof bytes);
    std::uint64_t number = 0;
    for (std::size_t index = sizeof bytes; index-- > 0;) number = number << 8 | bytes[index];
    return static_cast<Number>(number);
  }
  std::optional<Error> failure();
  std::string_view rest() { return std::exchange(bytes_, {}); }
  /// Every read succeeded, and no byte is left.
  bool is_good() const { return is_good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool is_good_ = true;
};

/// protocol_error: a rank sent a message of another form.
Error malformed_message();

/// A rank's vote: no failure, or why it has no communicator.
std::string encode_vote(const std::optional<Error>& failure);
/// errors  protocol_error
Result<std::optional<Error>> decode_vote(std::string_view bytes);

}  // namespace muster::communicator
