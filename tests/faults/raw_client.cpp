// A client that speaks the protocol by hand, and does what no rank of the library does.
//
//     fault_raw_client HOST:PORT lost_count GROUP
//         joins as rank 1 of 2 and asks rank 0 for objects that are not next, and for those that
//         are
//     fault_raw_client HOST:PORT takes_nothing KEY
//         asks 40 times for the key's value and reads no reply, until the server closes or its own
//         input ends
//
// Reported are lines of JSON, as by fault_worker.

#include "support/raw_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "faults/report.h"
#include "muster/codec_raw.h"
#include "wire/error_body.h"
#include "wire/reply.h"

namespace muster::faults {
namespace {

using nlohmann::json;
using test::RawClient;

constexpr int small_buffer_bytes = 16 * 1024;
constexpr int asked_count = 40;

/// What the reply says; `more` adds what its body holds.
template <class Body, class More>
void report(const RawClient::Frame& frame, const More& more) {
  json line{{"event", "reply"}};
  if (const auto error = wire::decode_error(frame.header.code, frame.body)) {
    line.update(described(*error));
  } else {
    line["code"] = "ok";
    more(line, wire::decode_body<Body>(frame.body).value());
  }
  say(std::move(line));
}

void lose_count(const std::string& address, std::string_view group) {
  RawClient client = RawClient::with_session(address);
  std::uint64_t epoch = 0;
  wire::Join join;
  join.group = group;
  join.rank = 1;
  join.world_size = 2;
  join.data_expiration = std::chrono::hours(1);
  report<wire::FormedReply>(client.call(join), [&](json& line, const wire::FormedReply& formed) {
    line["epoch"] = epoch = formed.epoch;
  });
  for (const std::uint64_t sequence : {5, 0, 0, 2, 1}) {
    report<wire::ReceiveReply>(
        client.call(wire::Receive{epoch, 0, 0, sequence, RawCodec::id}),
        [](json& line, const wire::ReceiveReply& object) { line["value"] = object.value; });
  }
}

/// It is heard all the time, so that what ends its connection is that it does not read.
void take_nothing(const std::string& address, std::string_view key) {
  RawClient client = RawClient::with_session(address, small_buffer_bytes);
  std::string requests;
  for (int count = 0; count < asked_count; ++count) {
    requests += client.request(wire::Get{key}, std::chrono::seconds(60));
  }
  client.send(requests);
  say({{"event", "asked"}});
  constexpr int heartbeat_ms = 200;
  for (std::uint64_t id = 1;; ++id) {
    pollfd ready[] = {{client.fd(), 0, 0}, {STDIN_FILENO, POLLIN, 0}};
    ::poll(ready, 2, heartbeat_ms);
    if (ready[0].revents != 0 || ready[1].revents != 0) return;
    std::string heartbeat;
    wire::append_ids(heartbeat, wire::FrameType::heartbeat, id, {});
    client.send_some(heartbeat);
  }
}

int run(std::string_view what, const std::string& address, std::string_view name) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (what == "lost_count") {
    lose_count(address, name);
  } else if (what == "takes_nothing") {
    take_nothing(address, name);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace muster::faults

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return muster::faults::run(argv[2], argv[1], argv[3]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
