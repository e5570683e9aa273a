#include <doctest/doctest.h>

#include "golden/again.h"
#include "golden/sample.h"
#include "wire/frame.h"

// What no peer of ours sends: each message of the protocol cut and flipped at each byte. The
// sanitizers say whether any of it reads where it must not.

using namespace muster;
using namespace muster::golden;

namespace {

/// The message without its last bytes, with a header that tells the truth about it.
std::string cut(const Sample& sample, std::size_t size) {
  std::string bytes = sample.bytes.substr(0, size);
  if (sample.framed) tell_true_length(bytes);
  return bytes;
}

/// Decoding may refuse; what it accepts must be a fixed point of encoding and decoding.
void check_total(const Sample& sample, const std::string& bytes) {
  CHECK(is_settled_by(sample.again, bytes));
}

}  // namespace

TEST_CASE("every message cut at any byte is an error") {
  for (const Sample& sample : all_samples()) {
    for (std::size_t size = 0; size < sample.bytes.size(); ++size) {
      CAPTURE(sample.name);
      CAPTURE(size);
      const std::string bytes = cut(sample, size);
      const Result<std::string> again = sample.again(bytes);
      if (sample.cut_may_decode && size >= wire::frame_header_bytes) {
        if (again) CHECK(*again == bytes);
      } else {
        REQUIRE_FALSE(again.has_value());
        CHECK(again.error().code == ErrorCode::protocol_error);
      }
    }
  }
}

TEST_CASE("every message with any byte changed decodes to something or to an error") {
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    for (std::size_t at = 0; at < sample.bytes.size(); ++at) {
      CAPTURE(at);
      const auto original = static_cast<unsigned char>(sample.bytes[at]);
      for (const unsigned change :
           {0x01U, 0x02U, 0x04U, 0x08U, 0x10U, 0x20U, 0x40U, 0x80U, 0xffU}) {
        std::string bytes = sample.bytes;
        bytes[at] = static_cast<char>(static_cast<unsigned char>(original ^ change));
        check_total(sample, bytes);
      }
    }
  }
}

TEST_CASE("every message with any four bytes set to the largest number decodes or is an error") {
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    for (std::size_t at = 0; at + 4 <= sample.bytes.size(); ++at) {
      CAPTURE(at);
      std::string bytes = sample.bytes;
      bytes.replace(at, 4, 4, '\xff');
      check_total(sample, bytes);
    }
  }
}

TEST_CASE("random bytes are no message of any kind and do no harm") {
  std::uint64_t state = 1;
  const auto next = [&state] {
    return state = state * 6364136223846793005U + 1442695040888963407U;
  };
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    for (int turn = 0; turn < 200; ++turn) {
      std::string bytes = sample.bytes;
      const std::size_t from = sample.framed ? wire::frame_header_bytes : 8;
      for (std::size_t at = from; at < bytes.size(); ++at)
        bytes[at] = static_cast<char>(next() >> 56);
      check_total(sample, bytes);
    }
  }
}
