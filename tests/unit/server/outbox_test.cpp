#include "server/peer/outbox.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include <doctest/doctest.h>

#include "support/scale.h"
#include "unit/server/quiet_channel.h"

namespace {

using muster::server::Outbox;
namespace net = muster::net;
namespace wire = muster::wire;

/// A socket that takes so many bytes, and what it took.
class TightChannel final : public muster::server::QuietChannel {
 public:
  void send(std::string_view bytes) override {
    queue_ += bytes;
    unsent_bytes_ += bytes.size();
  }
  void send(net::SharedBytes bytes) override { send(bytes.view); }
  void flush() override {
    if (queue_.empty()) return;
    ++writes;
    queue_.erase(0, take(queue_));
    unsent_bytes_ = queue_.size();
  }
  std::size_t offer(std::span<const std::string_view> pieces) override {
    REQUIRE(queue_.empty());
    ++writes;
    std::size_t count = 0;
    for (const std::string_view piece : pieces) count += take(piece);
    return count;
  }

  std::uint64_t room = 0;
  std::string taken;
  int writes = 0;

 private:
  std::size_t take(std::string_view bytes) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    taken += bytes.substr(0, count);
    room -= count;
    return count;
  }

  std::string queue_;
};

net::SharedBytes shared(std::string bytes) {
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *kept;
  return {view, std::move(kept), true};
}

std::string text_of(std::size_t bytes, std::mt19937_64& random) {
  std::string text(bytes, '\0');
  for (char& character : text) character = static_cast<char>(random());
  return text;
}

wire::FrameHeader reply(std::uint64_t id, std::size_t bytes) {
  return {static_cast<std::uint32_t>(bytes), wire::FrameType::reply, 7, id};
}

/// The bodies of the replies among the frames, by their ids.
std::map<std::uint64_t, std::string> bodies(std::string_view bytes) {
  std::map<std::uint64_t, std::string> found;
  std::map<std::uint64_t, std::string> begun;
  while (!bytes.empty()) {
    const auto frame = wire::cut_frame(bytes, 1U << 30);
    REQUIRE(frame.has_value());
    REQUIRE(frame->has_value());
    const auto& [header, body] = **frame;
    bytes.remove_prefix(wire::frame_header_bytes + body.size());
    std::string& all = begun[header.id];
    all += body;
    if (header.type == wire::FrameType::part) {
      CHECK(header.code == 0);
      continue;
    }
    CHECK(header.code == 7);
    CHECK(found.emplace(header.id, std::move(all)).second);
  }
  return found;
}

TEST_CASE("what is kept beside long replies, and for short bytes between them, is counted") {
  const auto value = std::make_shared<const std::string>(Outbox::part_bytes_max + 1, 'x');
  const auto held = [&](std::string_view between) {
    muster::server::QuietChannel channel;
    Outbox outbox(channel);
    constexpr int count = 8;
    for (int sent = 0; sent < count; ++sent) {
      outbox.send_bare(net::SharedBytes{*value, value});
      if (sent % 2 == 0) outbox.send_bare(between);
    }
    CHECK(outbox.replies_count() >= count);
    CHECK(outbox.own_bytes() >= outbox.replies_count() * Outbox::reply_bytes);
    const std::uint64_t bytes = outbox.held_bytes();
    outbox.clear();
    CHECK(outbox.held_bytes() == 0);
    CHECK(outbox.own_bytes() == 0);
    return bytes;
  };
  CHECK(held({}) >= 8 * sizeof(net::SharedBytes));
  CHECK(held("12345678") >= held({}) + 4 * 64);
  CHECK(held(std::string(1000, 'x')) >= held("12345678") + 4 * 900);
}

TEST_CASE("whatever the socket takes at a time, the same replies come out") {
  std::mt19937_64 random(20260731);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const int rounds = std::min(60, muster::test::scaled(1'200));  // fewer with a sanitizer
  for (int round = 0; round < rounds; ++round) {
    TightChannel channel;
    Outbox outbox(channel);
    std::map<std::uint64_t, std::string> sent;
    for (std::uint64_t id = 1; id <= 4; ++id) {
      std::string head = text_of(1 + (below(3) == 0 ? below(40) : below(700'000)), random);
      std::string tail = text_of(below(3) == 0 ? 0 : below(2'000'000), random);
      sent[id] = head + tail;
      outbox.send_in_parts(reply(id, sent[id].size()), shared(std::move(head)),
                           shared(std::move(tail)));
    }
    std::uint64_t id = 100;
    while (outbox.unsent_bytes() > 0) {
      // A part with its header has 262,160 bytes: the ends of what is taken lie around its ends,
      // too.
      channel.room = below(4) == 0 ? below(3) * 262'160 + below(40) : below(1'000'000);
      if (below(3) == 0) {
        sent[++id] = text_of(below(50), random);
        outbox.send(reply(id, sent[id].size()), sent[id]);
      }
      outbox.flush(below(3) * 1'000'000);
    }
    CHECK(outbox.own_bytes() == 0);
    CHECK(outbox.waiting_bytes() == 0);
    CHECK((bodies(channel.taken) == sent));
  }
}

TEST_CASE("a short frame waits behind two parts at most, however much the socket was offered") {
  TightChannel channel;
  Outbox outbox(channel);
  std::mt19937_64 random(1);
  outbox.send_in_parts(reply(1, 8'000'000), shared(text_of(8'000'000, random)), {});
  for (const std::uint64_t room : {0U, 8U, 16U, 100'000U, 262'160U, 262'170U, 900'000U}) {
    channel.room = room;
    outbox.flush(2'000'000);
    CHECK(channel.unsent_bytes() <= 2 * (Outbox::part_bytes_max + wire::frame_header_bytes));
    CHECK(outbox.waiting_bytes() == channel.unsent_bytes());
  }
}

TEST_CASE(
    "a socket that takes all gets several parts in one write, and no more than it is to get") {
  TightChannel channel;
  channel.room = ~std::uint64_t{0};
  Outbox outbox(channel);
  std::mt19937_64 random(1);
  outbox.send_in_parts(reply(1, 4'000'000), shared(text_of(4'000'000, random)), {});
  outbox.flush(2'000'000);
  CHECK(channel.writes == 1);
  CHECK(channel.taken.size() >= 2'000'000);
  CHECK(channel.taken.size() < 2'000'000 + 2 * Outbox::part_bytes_max);
  CHECK(outbox.wants_part());
  const std::size_t before_bytes = channel.taken.size();
  outbox.flush(0);
  CHECK(channel.taken.size() == before_bytes);
  outbox.flush(1);
  CHECK(channel.taken.size() - before_bytes == Outbox::part_bytes_max + wire::frame_header_bytes);
}

TEST_CASE("bare bytes leave in their order and without headers, however short and long ones mix") {
  std::mt19937_64 random(7);
  for (int run = 0; run < 12; ++run) {
    TightChannel channel;
    Outbox outbox(channel);
    std::string sent;
    for (int step = 0; step < 40; ++step) {
      const std::string bytes =
          text_of(random() % 4 == 0 ? random() % 900'000 : random() % 50, random);
      sent += bytes;
      if (random() % 2 == 0) {
        outbox.send_bare(bytes);
      } else {
        outbox.send_bare(shared(bytes));
      }
      channel.room += random() % 300'000;
      if (random() % 3 == 0) outbox.flush(random() % 2 == 0 ? 4'000'000 : 0);
      CHECK(outbox.unsent_bytes() + channel.taken.size() == sent.size());
    }
    while (outbox.unsent_bytes() != 0) {
      channel.room += 100'000;
      outbox.flush(4'000'000);
    }
    CHECK(channel.taken == sent);
    CHECK_FALSE(outbox.has_long());
    CHECK(outbox.own_bytes() == 0);
  }
}

}  // namespace
