#include "server/peer/peers.h"

#include <doctest/doctest.h>

#include "support/allocations.h"

namespace {

using muster::core::Quota;
using muster::server::Peers;
namespace net = muster::net;

class SilentChannel final : public net::Channel {
 public:
  void start(Callbacks) override {}
  void send(std::string_view) override {}
  void send(net::SharedBytes) override {}
  void flush() override {}
  void read_into(std::span<char>) override {}
  void pause_reading() override {}
  void resume_reading() override {}
  void close() override {}
  void close_after_flush(muster::Duration) override {}
  bool is_open() const override { return true; }
  bool is_lingering() const override { return false; }
};

TEST_CASE("that all peers go in one turn costs memory and time per peer") {
  constexpr std::size_t count = 4096;
  Quota quota(1U << 30);
  Peers peers;
  const auto channel = std::make_shared<SilentChannel>();
  for (std::size_t number = 0; number < count; ++number) peers.add(channel, quota, {1024, 1024});
  const auto all = peers.all();
  REQUIRE(all.size() == count);
  const auto bytes = muster::test::bytes_allocated_by([&] {
    for (muster::server::Peer* const peer : all) peers.mark_gone(*peer);
  });
  CHECK(bytes < count * 100);
  CHECK(peers.count() == 0);
  CHECK(peers.find(all.front()->id) == nullptr);
  peers.bury();
  CHECK_FALSE(peers.has_gone());
}

}  // namespace
