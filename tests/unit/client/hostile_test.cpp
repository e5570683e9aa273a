// A server that says anything at all: the client neither crashes nor waits past its deadlines, and
// what is cut differently means the same.

#include <doctest/doctest.h>

#include "conversation.h"

namespace muster::client::protocol {
namespace {

/// What a server says to `begin`, after its hello.
std::string story() {
  std::string bytes;
  bytes += reply_bytes(1, wire::ValueReply{"a value of some length"});
  bytes += event_bytes(wire::EventKind::epoch_broken, ErrorCode::rank_lost);
  bytes += error_bytes(2, ErrorCode::timed_out);
  bytes += frame_bytes(wire::FrameType::heartbeat_reply, 0, 1, "");
  bytes += reply_bytes(3, wire::NumberReply{7});
  return bytes;
}

constexpr Duration patience = 20s;

/// Three calls before the session stands; a fourth that the server never answers.
void begin(Conversation& conversation) {
  conversation.open();
  conversation.call(wire::Get{"k"}, patience);
  conversation.call(wire::Take{"k"}, patience);
  conversation.call(wire::Add{"n", 1}, patience);
  conversation.call(wire::Add{"n", 1}, patience);
  conversation.apply(Connected{});
}

void check_story(const Conversation& conversation) {
  CHECK(conversation.completion(1).reply.has_value());
  CHECK(conversation.code(2) == ErrorCode::timed_out);
  CHECK(conversation.completion(3).reply.has_value());
  CHECK_FALSE(conversation.is_over(4));
  CHECK(conversation.notified.size() == 1);
  CHECK(conversation.disconnect_count == 0);
}

/// Everything ends once and in time, whatever went before.
void check_end(Conversation& conversation) {
  const int looks = conversation.pass(patience + 1s);
  CHECK(looks < 1000);
  for (CallId id = 1; id <= 4; ++id) CHECK(conversation.completions.count(id) == 1);
  CHECK(conversation.protocol.requests().count() == 0);
}

TEST_CASE("bytes that are cut at any place mean the same") {
  const std::string bytes = hello_bytes() + story();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Conversation conversation;
    begin(conversation);
    conversation.receive(std::string_view(bytes).substr(0, cut));
    conversation.receive(std::string_view(bytes).substr(cut));
    check_story(conversation);
  }
  Conversation conversation;
  begin(conversation);
  for (const char& byte : bytes) conversation.receive({&byte, 1});
  check_story(conversation);
}

TEST_CASE("a connection that ends at any byte is resumed, and nothing is lost or told twice") {
  const std::string bytes = hello_bytes() + story();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Conversation conversation;
    begin(conversation);
    conversation.receive(std::string_view(bytes).substr(0, cut));
    conversation.apply(Disconnected{});
    conversation.pass(200ms);
    conversation.apply(Connected{});
    conversation.receive(hello_bytes(1, cut >= wire::server_hello_bytes) + story());
    CHECK(conversation.completions.size() == 3);
    CHECK(conversation.protocol.requests().count() == 1);
  }
}

TEST_CASE("any byte that is changed is survived") {
  const std::string bytes = hello_bytes() + story();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      Conversation conversation;
      begin(conversation);
      conversation.receive(changed);
      check_end(conversation);
    }
  }
}

TEST_CASE("random bytes in the place of frames are survived") {
  std::uint64_t state = 1;
  const auto random = [&state] {
    state = state * 6364136223846793005 + 1442695040888963407;
    return state >> 33;
  };
  for (int round = 0; round < 300; ++round) {
    Conversation conversation;
    begin(conversation);
    conversation.receive(hello_bytes());
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Often a plausible header, so that bodies are looked at, too.
    if (bytes.size() >= wire::frame_header_bytes && random() % 4 != 0) {
      const std::size_t body_bytes = bytes.size() - wire::frame_header_bytes;
      bytes.replace(0, 4, std::string{static_cast<char>(body_bytes), 0, 0, 0});
      bytes[4] = static_cast<char>(1 + random() % 8);
      bytes[6] = static_cast<char>(random() % 3);
      bytes[7] = 0;
      bytes.replace(8, 8, std::string{static_cast<char>(random() % 6), 0, 0, 0, 0, 0, 0, 0});
    }
    conversation.receive(bytes);
    check_end(conversation);
  }
}

TEST_CASE("frames that only a client sends end the connection") {
  for (const auto type : {wire::FrameType::request, wire::FrameType::acknowledge,
                          wire::FrameType::abandon, wire::FrameType::heartbeat}) {
    Conversation conversation;
    conversation.establish();
    conversation.receive(frame_bytes(type, 0, 1, ""));
    CHECK(conversation.disconnect_count == 1);
    CHECK_FALSE(conversation.protocol.established());
  }
}

TEST_CASE("a reply to what was not sent yet ends the connection") {
  wire::ServerLimits limits;
  limits.cached_results_max = 1;
  Conversation conversation;
  conversation.establish(limits);
  conversation.call(wire::Add{"n", 1}, patience);
  const CallId queued = conversation.call(wire::Add{"n", 1}, patience);
  conversation.receive(reply_bytes(queued, wire::NumberReply{1}));
  CHECK(conversation.disconnect_count == 1);
  CHECK_FALSE(conversation.is_over(queued));
}

TEST_CASE("a frame that declares too much is refused on its header") {
  wire::ServerLimits limits;
  limits.value_bytes_max = 1000;
  limits.round_bytes_max = 1000;
  Conversation conversation;
  conversation.establish(limits);
  std::string header = frame_bytes(wire::FrameType::reply, 0, 1, "");
  const std::uint32_t declared = limits.reply_bytes_max() + 1;
  for (std::size_t at = 0; at < 4; ++at) {
    header[at] = static_cast<char>(declared >> (8 * at));
  }
  conversation.receive(header);
  CHECK(conversation.disconnect_count == 1);
  CHECK(conversation.protocol.session().last_trouble().code == ErrorCode::protocol_error);
  CHECK(conversation.protocol.session().last_trouble().limit == limits.reply_bytes_max());
}

TEST_CASE("limits that would keep the client busy with nothing else do not") {
  wire::ServerLimits limits;
  limits.heartbeat = 1us;
  limits.session_timeout = 1us;
  limits.cached_results_max = 0;
  limits.slack = Duration(0xffffffff);
  Conversation conversation;
  conversation.establish(limits);
  conversation.call(wire::Add{"n", 1}, 1s);
  CHECK(conversation.pass(10s) < 3000);
}

TEST_CASE("what else seems to speak at the address is named") {
  for (const auto& [bytes, name] :
       {std::pair("HTTP/1.1 400 Bad Request\r\n", "HTTP"), std::pair("SSH-2.0-x\r\n", "SSH")}) {
    Conversation conversation;
    conversation.open();
    conversation.apply(Connected{});
    const CallId call = conversation.call(wire::Get{"k"}, patience);
    conversation.receive(bytes);
    CHECK(conversation.code(call) == ErrorCode::protocol_error);
    CHECK(conversation.completion(call).reply.error().detail.find(name) != std::string::npos);
    REQUIRE(conversation.protocol.session().failure() != nullptr);
    CHECK(conversation.protocol.session().failure()->code == ErrorCode::protocol_error);
    CHECK(conversation.notified.empty());
  }
}

}  // namespace
}  // namespace muster::client::protocol
