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

// What the ranks tell each other while a communicator is made: numbers are little-endian,
// docs/nccl.md has it byte by byte.

template <class Number>
void append_number(std::string& out, Number number) {
  for (std::size_t index = 0; index < sizeof number; ++index) {
    out.push_back(static_cast<char>(number >> (8 * index) & 0xff));
  }
}

/// Of an error its code, `actual`, `limit` and `detail`, which takes what is left.
void append_trouble(std::string& out, const std::optional<Error>& trouble);

/// Reads from the front; what is not there makes it bad for good.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  void take(void* to, std::size_t count);
  template <class Number>
  Number number() {
    unsigned char bytes[sizeof(Number)] = {};
    take(bytes, sizeof bytes);
    std::uint64_t number = 0;
    for (std::size_t index = sizeof bytes; index-- > 0;) number = number << 8 | bytes[index];
    return static_cast<Number>(number);
  }
  std::optional<Error> trouble();
  std::string_view rest() { return std::exchange(bytes_, {}); }
  /// All was there, and nothing is left.
  bool is_good() const { return is_good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool is_good_ = true;
};

/// protocol_error: what a rank sent is none of this.
Error no_part_of_making();

/// What a rank tells in the end: none, or why it has no communicator.
std::string encode_report(const std::optional<Error>& trouble);
/// errors  protocol_error
Result<std::optional<Error>> decode_report(std::string_view bytes);

/// FNV-1a.
std::uint64_t digest_of(std::string_view bytes);

}  // namespace muster::communicator
