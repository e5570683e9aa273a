#include <string>
#include <variant>

#include "core/memory/payload.h"
#include "samples.h"
#include "server/peer/frame_assembler.h"
#include "wire/request.h"
#include "work.h"

namespace muster::bench {
namespace {

constexpr int frames_of_batch = 64;

/// One connection, and what it reads.
struct Reading {
  explicit Reading(std::size_t) {
    for (int i = 0; i < frames_of_batch; ++i) {
      wire::Request get;
      get.id = static_cast<std::uint64_t>(i);
      get.body = wire::Get{"key-000000000001"};
      wire::append_request(gets, get);
    }
    wire::Request request;
    wire::Set set;
    set.key = "key-000000000001";
    set.value = value();
    request.body = set;
    wire::append_request(one_set, request);
  }

  /// Hands on every frame that has come, and stores the rest.
  void read(std::string_view bytes) {
    frames.give(bytes);
    for (;;) {
      auto next = frames.next();
      use(next);
      if (std::holds_alternative<server::FrameAssembler::Incomplete>(*next)) return;
    }
  }

  core::Quota quota{1U << 30};
  server::FrameAssembler frames{quota, {frame_body_bytes_max, frame_body_bytes_max}};
  std::string gets;
  std::string one_set;
};

void read_batch(Reading& reading) { reading.read(reading.gets); }

void read_two_halves(Reading& reading) {
  const std::string_view bytes = reading.one_set;
  reading.read(bytes.substr(0, bytes.size() / 2));
  reading.read(bytes.substr(bytes.size() / 2));
}

}  // namespace

std::vector<Work> frame_work() {
  return {{"frames/one of 64 in one read", with<Reading>(read_batch), frames_of_batch},
          {"frames/one in two reads", with<Reading>(read_two_halves)}};
}

}  // namespace muster::bench
