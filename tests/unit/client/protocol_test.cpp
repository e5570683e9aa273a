#include <doctest/doctest.h>

#include "conversation.h"
#include "support/decoded.h"

namespace muster::client::protocol {
namespace {

std::size_t count_of(const std::vector<std::string>& transmitted, wire::FrameType type) {
  std::size_t count = 0;
  for (const std::string& bytes : transmitted) {
    if (bytes.size() >= 5 && bytes[4] == static_cast<char>(type)) ++count;
  }
  return count;
}

TEST_CASE("every call is over once, however many are pending") {
  Conversation conversation;
  conversation.establish();
  constexpr CallId call_count = 100'000;
  for (CallId id = 1; id <= call_count; ++id) {
    conversation.protocol.submit(wire::Get{"k"}, 1s + Duration(id % 1000), conversation.now);
  }
  conversation.take();
  // Each event costs the same, whatever is pending: otherwise this would take minutes.
  for (CallId id = 1; id <= call_count; id += 2) {
    conversation.protocol.apply(Received{reply_bytes(id, wire::ValueReply{"v"})}, conversation.now);
  }
  for (CallId id = 2; id <= call_count; id += 4) conversation.protocol.cancel(id, conversation.now);
  conversation.take();
  conversation.pass(3s);
  CHECK(conversation.completions.size() == call_count);
  CHECK(conversation.completion(1).reply.has_value());
  CHECK(conversation.code(2) == ErrorCode::cancelled);
  CHECK(conversation.code(4) == ErrorCode::outcome_unknown);
  CHECK(conversation.protocol.requests().count() == 0);
}

TEST_CASE("what is left of a broken one fails all calls, and gives none the id of an older one") {
  Conversation broken;
  broken.establish();
  const CallId older = broken.call(wire::Get{"k"}, 10s);
  Error why;
  why.code = ErrorCode::resource_exhausted;
  Conversation conversation(broken.protocol, why);
  const CallId failed = conversation.call(wire::Get{"k"}, 10s);
  CHECK(failed > older);
  CHECK(conversation.code(failed) == ErrorCode::resource_exhausted);
  CHECK_FALSE(conversation.is_over(older));

  conversation.protocol.open(conversation.now);
  conversation.apply(Connected{});
  const auto hello = wire::decode_client_hello(conversation.transmitted.back());
  REQUIRE(hello);
  CHECK(hello->session_id == 0);
  conversation.receive(hello_bytes(2));
  const CallId later = conversation.call(wire::Get{"k"}, 10s);
  CHECK(later > failed);
  conversation.receive(reply_bytes(later, wire::ValueReply{"v"}));
  CHECK(conversation.completion(later).reply.has_value());
}

TEST_CASE("many replies of one read are acknowledged by the next request alone") {
  Conversation conversation;
  conversation.establish();
  std::string replies;
  for (CallId id = 1; id <= 50; ++id) {
    conversation.call(wire::Add{"n", 1}, 10s);
    replies += reply_bytes(id, wire::NumberReply{1});
  }
  conversation.receive(replies);
  CHECK(count_of(conversation.transmitted, wire::FrameType::acknowledge) == 0);
  conversation.call(wire::Get{"k"}, 10s);
  const auto frame = wire::cut_frame(conversation.transmitted.back(), 1 << 20);
  CHECK(test::decoded_request(**frame)->acknowledged.size() == 50);
}

TEST_CASE("an answer whose receipt is its caller's is acknowledged when that says so") {
  Conversation conversation;
  conversation.establish();
  const auto receive = [&] {
    const CallId id = conversation.protocol.submit(wire::Receive{7, 0, 0, 0, 1}, 10s,
                                                   conversation.now, 0, Receipt::by_caller);
    conversation.take();
    conversation.receive(reply_bytes(id, wire::ReceiveReply{0, 1, "object"}));
    CHECK(conversation.completion(id).reply.has_value());
    return id;
  };
  const auto acknowledged = [&] {
    conversation.call(wire::Get{"k"}, 10s);
    const auto frame = wire::cut_frame(conversation.transmitted.back(), 1 << 20);
    return test::decoded_request(**frame)->acknowledged;
  };
  const auto abandon_count = [&] {
    return count_of(conversation.transmitted, wire::FrameType::abandon);
  };
  const CallId accepted = receive();
  CHECK(acknowledged().empty());
  conversation.protocol.requests().conclude(accepted, Verdict::accepted);
  CHECK(acknowledged() == std::vector<std::uint64_t>{accepted});

  // An answer that comes twice, as after a resume, is not abandoned while it is held.
  const CallId refused = receive();
  conversation.receive(reply_bytes(refused, wire::ReceiveReply{0, 1, "object"}));
  CHECK(abandon_count() == 0);
  conversation.protocol.requests().conclude(refused, Verdict::refused);
  conversation.take();
  CHECK(abandon_count() == 1);
  CHECK(acknowledged().empty());

  // Nobody is told of a session that is over.
  const CallId late = receive();
  conversation.receive(event_bytes(wire::EventKind::session_ended, ErrorCode::session_expired));
  conversation.protocol.requests().conclude(late, Verdict::refused);
  conversation.protocol.requests().conclude(late, Verdict::accepted);
  conversation.take();
  CHECK(abandon_count() == 1);
}

TEST_CASE("a reply that comes in parts is put together, whatever stands between them") {
  Conversation conversation;
  conversation.establish();
  const auto part = [](CallId id, std::string_view bytes) {
    return frame_bytes(wire::FrameType::part, 0, id, bytes);
  };
  const CallId first = conversation.call(wire::Get{"a"}, 60s);
  const CallId second = conversation.call(wire::Get{"b"}, 60s);
  std::string body;
  wire::append_body(body, wire::ValueReply{"a long value"});
  conversation.receive(part(first, body.substr(0, 3)) + part(first, body.substr(3, 2)) +
                       reply_bytes(second, wire::ValueReply{"short"}) + part(first, ""));
  CHECK(conversation.completion(second).reply.has_value());
  CHECK(conversation.completions.count(first) == 0);
  conversation.receive(frame_bytes(wire::FrameType::reply, 0, first, body.substr(5)));
  CHECK(conversation.completion(first).reply.value() == body);

  // One that was given up is dropped.
  const CallId third = conversation.call(wire::Get{"c"}, 60s);
  conversation.receive(part(third, "xxxx"));
  conversation.protocol.cancel(third, conversation.now);
  conversation.receive(part(third, "xxxx") + frame_bytes(wire::FrameType::reply, 0, third, "x"));
  const CallId fourth = conversation.call(wire::Get{"d"}, 60s);
  conversation.receive(reply_bytes(fourth, wire::ValueReply{"v"}));
  CHECK(conversation.completion(fourth).reply.has_value());
  CHECK(conversation.disconnect_count == 0);
}

TEST_CASE("parts of two replies at a time, and too many of one, break the protocol") {
  const auto part = [](CallId id, std::string_view bytes) {
    return frame_bytes(wire::FrameType::part, 0, id, bytes);
  };
  for (const bool is_mixed : {true, false}) {
    Conversation conversation;
    wire::ServerLimits limits;
    limits.value_bytes_max = 1000;
    limits.round_bytes_max = 1000;
    conversation.establish(limits);
    const CallId first = conversation.call(wire::Get{"a"}, 60s);
    const CallId second = conversation.call(wire::Get{"b"}, 60s);
    conversation.receive(part(first, "x"));
    CHECK(conversation.disconnect_count == 0);
    if (is_mixed) {
      conversation.receive(part(second, "x"));
    } else {
      const std::string many(limits.reply_bytes_max(), 'x');
      conversation.receive(part(first, many));
    }
    CHECK(conversation.disconnect_count == 1);
  }
}

TEST_CASE("a barrier costs one round trip and a one-way frame") {
  Conversation conversation;
  conversation.establish();
  conversation.transmitted.clear();
  wire::CollectiveCall barrier;
  barrier.epoch = 7;
  barrier.round = 1;
  const CallId call = conversation.call(barrier, 10s);
  conversation.receive(reply_bytes(call, wire::RoundReply{}));
  CHECK(conversation.transmitted.size() == 2);
  CHECK(count_of(conversation.transmitted, wire::FrameType::request) == 1);
  CHECK(count_of(conversation.transmitted, wire::FrameType::acknowledge) == 1);
}

TEST_CASE("a request that the server would not take ends here, not the connection") {
  wire::ServerLimits limits;
  limits.value_bytes_max = 1000;
  limits.round_bytes_max = 1000;
  limits.world_size_max = 1;
  limits.keys_per_operation_max = 1;
  Conversation conversation;
  conversation.establish(limits);
  const std::string value(limits.request_bytes_max(), 'x');
  const CallId call = conversation.call(wire::Append{"k", value}, 10s);
  CHECK(conversation.code(call) == ErrorCode::too_large);
  CHECK(conversation.completion(call).fate == Fate::unsent);
  CHECK(conversation.completion(call).reply.error().actual > value.size());
  CHECK(conversation.protocol.established());
}

TEST_CASE("frames that come with the hello are read") {
  Conversation conversation;
  conversation.open();
  conversation.apply(Connected{});
  conversation.receive(hello_bytes() +
                       event_bytes(wire::EventKind::rank_left, ErrorCode::rank_left));
  CHECK(conversation.established_count == 1);
  CHECK(conversation.notified.size() == 1);
}

TEST_CASE("what was transmitted before is repeated byte by byte but for its time") {
  Conversation conversation;
  conversation.establish();
  conversation.call(wire::Append{"key", "suffix"}, 10s);
  const std::string first = conversation.transmitted.back();
  conversation.now += 1s;
  conversation.apply(Disconnected{});
  conversation.apply(Connected{});
  conversation.receive(hello_bytes(1, true));
  const std::string again = conversation.transmitted.back();
  CHECK(again.size() == first.size());
  CHECK(again.substr(0, 16) == first.substr(0, 16));
  CHECK(again.substr(24) == first.substr(24));
  const auto frame = wire::cut_frame(again, 1 << 20);
  CHECK(test::decoded_request(**frame)->timeout == 9s);
}

TEST_CASE("a timeout that is negative is none, and one of years is the longest that there is") {
  Conversation conversation;
  conversation.establish();
  const auto timeout_sent = [&conversation] {
    const auto frame = wire::cut_frame(conversation.transmitted.back(), 1 << 20);
    return test::decoded_request(**frame)->timeout;
  };
  conversation.call(wire::Get{"k"}, -5s);
  CHECK(timeout_sent() == Duration(0));
  conversation.call(wire::Get{"k"}, Duration::max());
  CHECK(timeout_sent() == base::timeout_max);
}

TEST_CASE("inputs that nobody waits for are ignored") {
  Conversation conversation;
  conversation.apply(Connected{});
  conversation.receive("bytes");
  conversation.apply(Disconnected{});
  conversation.apply(ConnectFailed{});
  conversation.apply(Advance{});
  CHECK(conversation.protocol.next_deadline() == base::far_future);
  conversation.establish();
  conversation.apply(Connected{});
  conversation.apply(ConnectFailed{});
  conversation.protocol.open(conversation.now);
  conversation.protocol.open(conversation.now);
  conversation.protocol.cancel(99, conversation.now);
  conversation.take();
  CHECK(conversation.connect_count == 1);
  CHECK(conversation.protocol.established());
}

TEST_CASE("the session's end is told once, and not when there was no session") {
  Conversation conversation;
  conversation.establish();
  conversation.receive(event_bytes(wire::EventKind::session_ended, ErrorCode::fenced) +
                       event_bytes(wire::EventKind::session_ended, ErrorCode::fenced));
  conversation.apply(Disconnected{});
  conversation.pass(100s);
  CHECK(conversation.notified.size() == 1);
  CHECK(conversation.connect_count == 1);
  CHECK(conversation.protocol.next_deadline() == base::far_future);
}

TEST_CASE("after a failure the protocol reopens under the same object with ids that go on") {
  Conversation conversation;
  conversation.establish();
  const CallId before = conversation.call(wire::Get{"k"}, 10s);
  conversation.receive(event_bytes(wire::EventKind::session_ended, ErrorCode::session_expired));
  CHECK(conversation.code(before) == ErrorCode::session_expired);
  conversation.protocol.open(conversation.now);
  conversation.take();
  const CallId after = conversation.call(wire::Get{"k"}, 10s);
  CHECK(after > before);
  conversation.apply(Connected{});
  const auto hello = wire::decode_client_hello(conversation.transmitted.back());
  CHECK(hello->session_id == 0);
  CHECK(hello->incarnation == 0);
  CHECK(hello->token == wire::ResumeToken{});
  conversation.receive(hello_bytes(2));
  CHECK(conversation.protocol.session().failure() == nullptr);
  conversation.receive(reply_bytes(after, wire::ValueReply{"v"}));
  CHECK(conversation.completion(after).reply.has_value());
}

}  // namespace
}  // namespace muster::client::protocol
