// The server's process dies, and comes back or does not.

#include <deque>
#include <vector>

#include <doctest/doctest.h>

#include "client.h"
#include "support/scale.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

struct Town {
  explicit Town(std::uint64_t seed) : random(seed) {
    for (std::uint64_t number = 0; number < 20; ++number) {
      clients.emplace_back(number, scheduler, network, server).open();
    }
    pass(random.between(1s, 3s));
    for (Client& client : clients) {
      client.call(wire::Take{"never"}, 300s, [this](const auto& reply, protocol::Fate) {
        codes.push_back(reply.error().code);
        last_at = scheduler.now();
      });
    }
    pass(random.between(0s, 2s));
  }

  void pass(Duration duration) { scheduler.run_until(scheduler.now() + duration); }

  Scheduler scheduler;
  Random random;
  Network network{scheduler, random};
  Server server{scheduler, network, random, core::Options{}};
  std::deque<Client> clients;
  std::vector<ErrorCode> codes;
  Instant last_at{};
};

TEST_CASE("all know within 1.5 s that the server was restarted, however long it was away") {
  for (std::uint64_t seed = 1; seed <= test::scaled<std::uint64_t>(20); ++seed) {
    CAPTURE(seed);
    Town town(seed);
    town.server.die();
    town.pass(town.random.between(0s, 25s));
    CHECK(town.codes.empty());
    town.server.start();
    town.pass(1500ms);
    CHECK(town.codes == std::vector<ErrorCode>(20, ErrorCode::server_restarted));
    for (Client& client : town.clients) client.reopen();
    town.pass(1s);
    CHECK(town.server.counts().sessions == 20);
  }
}

TEST_CASE("all know 30 s after its end that the server does not come back") {
  for (std::uint64_t seed = 1; seed <= test::scaled<std::uint64_t>(20); ++seed) {
    CAPTURE(seed);
    Town town(seed);
    town.server.die();
    const Instant died = town.scheduler.now();
    town.pass(31s);
    CHECK(town.codes == std::vector<ErrorCode>(20, ErrorCode::unavailable));
    CHECK(town.last_at >= died + 30s);
    CHECK(town.last_at <= died + 30s + 100ms);
  }
}

}  // namespace
}  // namespace muster::sim
