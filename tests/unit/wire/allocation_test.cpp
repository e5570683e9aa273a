#include <doctest/doctest.h>

#include "golden/sample.h"
#include "support/allocations.h"
#include "support/decoded.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/reader.h"
#include "wire/reply.h"
#include "wire/request.h"

// An executable of its own, because it watches the allocator.

using namespace muster;
using namespace muster::wire;
using namespace std::string_view_literals;

namespace {

/// Room for the text of the error; a list of four thousand million items is not.
constexpr std::size_t text_bytes = 1024;

using test::bytes_allocated_by;

}  // namespace

TEST_CASE("a reader never allocates, whatever is declared") {
  CHECK(bytes_allocated_by([] {
          Reader reader("\xff\xff\xff\xff\xff\xff\xff\xff"sv);
          (void)reader.bytes();
          Reader counted("\xff\xff\xff\xff\xff\xff\xff\xff"sv);
          (void)counted.count(1);
        }) == 0);
}

TEST_CASE("a frame that declares four gigabytes allocates none of them") {
  std::string bytes;
  append_frame(bytes, {0, FrameType::request, 2, 7}, "");
  bytes.replace(0, 4, "\xff\xff\xff\xff");
  CHECK(bytes_allocated_by([&] { CHECK_FALSE(cut_frame(bytes, 1U << 28).has_value()); }) <
        text_bytes);
  // Allowed, but not there yet: nothing is made room for.
  CHECK(bytes_allocated_by([&] { (void)cut_frame(bytes, 0xffffffff); }) == 0);
}

TEST_CASE("a count in any message that its bytes do not bear out allocates nothing for it") {
  for (const golden::Sample& sample : golden::all_samples()) {
    CAPTURE(sample.name);
    for (std::size_t at = frame_header_bytes; at + 4 <= sample.bytes.size(); ++at) {
      CAPTURE(at);
      std::string bytes = sample.bytes;
      bytes.replace(at, 4, 4, '\xff');
      // Decodes and encodes: what the message itself takes, a few times over.
      const std::size_t allocated = bytes_allocated_by([&] { (void)sample.again(bytes); });
      CHECK(allocated < 16 * text_bytes);
    }
  }
}

TEST_CASE("a request that declares 2^32-1 keys or ids allocates nothing for them") {
  Request request;
  request.id = 7;
  request.body = Remove{};
  std::string bytes;
  append_request(bytes, request);
  const std::size_t keys_at = frame_header_bytes + 12;
  const std::size_t ids_at = frame_header_bytes + 8;
  for (const std::size_t at : {keys_at, ids_at}) {
    std::string hostile = bytes;
    hostile.replace(at, 4, 4, '\xff');
    const auto cut = cut_frame(hostile, 1U << 20);
    CHECK(bytes_allocated_by([&] { CHECK_FALSE(test::decoded_request(**cut).has_value()); }) <
          text_bytes);
  }
}

TEST_CASE("a reply that declares 2^32-1 items allocates nothing for them") {
  const std::string_view body =
      "\xff\xff\xff\xff"
      "0123456789abcdef0123456789abcdef"sv;
  CHECK(bytes_allocated_by([&] {
          (void)decode_body<ValuesReply>(body);
          (void)decode_body<PresenceReply>(body);
          (void)decode_body<MembersReply>(body);
          (void)decode_body<StatusReply>(body);
          (void)decode_body<ListReply>(body);
        }) < 5 * text_bytes);
}

TEST_CASE("a hello is refused without making room for anything but the reason") {
  const std::string garbage(client_hello_bytes, '\xff');
  CHECK(bytes_allocated_by([&] { (void)decode_client_hello(garbage); }) < text_bytes);
}
