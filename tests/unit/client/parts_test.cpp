#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "client/protocol/backoff.h"
#include "client/protocol/calls.h"
#include "client/protocol/connection_state.h"
#include "client/protocol/inbox.h"
#include "client/protocol/lease.h"
#include "client/protocol/receipts.h"
#include "wire/request.h"

namespace muster::client::protocol {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::uint64_t>;

constexpr Instant start{1000s};

TEST_CASE("waits double from the least to the most, with jitter, and begin anew after a reset") {
  std::set<Duration> firsts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff(50ms, 1s, seed);
    Duration high = 100ms;
    for (int turn = 0; turn < 12; ++turn) {
      const Duration wait = backoff.next();
      if (turn == 0) firsts.insert(wait);
      CHECK(wait >= std::max<Duration>(50ms, high / 2));
      CHECK(wait <= high);
      high = std::min<Duration>(1s, 2 * high);
    }
    backoff.reset();
    CHECK(backoff.next() <= 100ms);
    CHECK(backoff.least() >= 50ms);
    CHECK(backoff.least() <= 100ms);
  }
  CHECK(firsts.size() > 190);
}

TEST_CASE("waits of equal bounds are that long") {
  Backoff backoff(70ms, 70ms, 3);
  CHECK(backoff.next() == 70ms);
  CHECK(backoff.next() == 70ms);
}

TEST_CASE("what is told is told again until a later frame is answered") {
  Receipts receipts;
  receipts.acknowledge(1);
  receipts.abandon(2);
  receipts.acknowledge(1);
  CHECK(receipts.take_acknowledgements(10) == Ids{1});
  CHECK(receipts.take_abandons(11) == Ids{2});
  CHECK_FALSE(receipts.has_acknowledgements());
  receipts.acknowledge(3);
  receipts.confirm(10);
  CHECK_FALSE(receipts.has(1));
  CHECK(receipts.has(2));
  receipts.connection_lost();
  CHECK(receipts.take_acknowledgements(20) == Ids{3});
  CHECK(receipts.take_abandons(21) == Ids{2});
  receipts.confirm(30);
  receipts.connection_lost();
  CHECK_FALSE(receipts.has_acknowledgements());
  CHECK_FALSE(receipts.has_abandons());
}

TEST_CASE("a reply is acknowledged or abandoned, never both") {
  Receipts receipts;
  receipts.acknowledge(1);
  receipts.abandon(1);
  CHECK_FALSE(receipts.has_abandons());
  receipts.abandon(2);
  receipts.acknowledge(2);
  CHECK(receipts.take_acknowledgements(1) == Ids{1});
}

TEST_CASE("one frame carries as many ids as it may, the next the rest") {
  Receipts receipts;
  for (std::uint64_t id = 1; id <= wire::ids_per_frame_max + 5; ++id) receipts.abandon(id);
  CHECK(receipts.take_abandons(1).size() == wire::ids_per_frame_max);
  CHECK(receipts.take_abandons(2).size() == 5);
}

TEST_CASE("calls are sent in the order of their ids and looked at in that of their time") {
  Calls calls;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    calls.wake_at(calls.add(id), start + std::chrono::seconds(10 - id));
  }
  CHECK(calls.next_wake() == start + 6s);
  CHECK(calls.due(start + 5s) == nullptr);
  CHECK(calls.due(start + 6s)->id == 4);
  calls.wake_at(*calls.find(4), start + 20s);
  CHECK(calls.due(start + 7s)->id == 3);

  CHECK(calls.first_unsent()->id == 1);
  calls.mark_sent(*calls.first_unsent(), 1);
  calls.mark_sent(*calls.first_unsent(), 2);
  CHECK(calls.first_unsent()->id == 3);
  calls.remove(*calls.find(1));
  calls.remove(*calls.find(3));
  CHECK(calls.sent_ids() == Ids{2});
  CHECK(calls.first_unsent()->id == 4);
  CHECK(calls.remove_all().size() == 2);
  CHECK(calls.first_unsent() == nullptr);
  CHECK(calls.next_wake() == base::far_future);
}

TEST_CASE("a lease counts from the sending of what was answered") {
  Lease lease;
  lease.begin(start);
  CHECK(lease.beat(1, start + 1s) == 1);
  CHECK(lease.beat(2, start + 2s) == 2);
  CHECK(lease.beat(3, start + 3s) == 3);
  CHECK(*lease.waiting_since() == start + 1s);
  CHECK(lease.answered(2)->serial == 2);
  CHECK(lease.proven() == start + 2s);
  CHECK_FALSE(lease.answered(2));
  CHECK_FALSE(lease.answered(1));
  CHECK_FALSE(lease.answered(99));
  CHECK_FALSE(lease.waiting_since());
  CHECK(lease.proven() == start + 2s);
}

TEST_CASE("an answer on a later connection to an earlier heartbeat proves nothing") {
  Lease lease;
  lease.begin(start);
  lease.beat(1, start + 1s);
  lease.connection_lost();
  CHECK_FALSE(lease.answered(1));
  CHECK(lease.beat(2, start + 5s) == 2);
  CHECK(lease.proven() == start);
}

TEST_CASE("bytes that were not used are kept in front of those that follow") {
  Inbox inbox;
  inbox.push("abcdef");
  inbox.consume(4);
  inbox.settle();
  inbox.push("gh");
  CHECK(inbox.rest() == "efgh");
  inbox.settle();
  inbox.push("i");
  CHECK(inbox.rest() == "efghi");
  inbox.consume(5);
  inbox.settle();
  inbox.push("j");
  CHECK(inbox.rest() == "j");
  inbox.drop_rest();
  inbox.settle();
  inbox.push("");
  CHECK(inbox.rest().empty());
}

TEST_CASE("an attempt is over after its time, and the next is due after a wait") {
  ConnectionState connection(Backoff(50ms, 1s, 1), 2s, Backoff(50ms, 1s, 1));
  connection.open(start);
  CHECK(connection.attempt_is_due(start));
  connection.connect(start);
  CHECK(connection.next_deadline() == start + 2s);
  connection.greet(start + 1s);
  CHECK(connection.began() == start + 1s);
  CHECK_FALSE(connection.attempt_is_overdue(start + 2s - 1us));
  CHECK(connection.attempt_is_overdue(start + 2s));
  connection.fail(AttemptOutcome::silent, start + 2s);
  CHECK_FALSE(connection.server_is_dead());
  CHECK(connection.next_deadline() >= start + 2050ms);
  CHECK(connection.next_deadline() <= start + 2100ms);
}

TEST_CASE("who refuses is dead, who is silent is not, and who says not now proves neither") {
  ConnectionState connection(Backoff(50ms, 1s, 1), 2s, Backoff(50ms, 1s, 1));
  connection.open(start);
  connection.connect(start);
  connection.fail(AttemptOutcome::refused, start);
  CHECK(connection.server_is_dead());
  connection.connect(start + 1s);
  connection.fail(AttemptOutcome::answered, start + 1s);
  CHECK(connection.server_is_dead());
  connection.connect(start + 2s);
  connection.fail(AttemptOutcome::silent, start + 4s);
  CHECK_FALSE(connection.server_is_dead());
  connection.connect(start + 5s);
  connection.fail(AttemptOutcome::refused, start + 5s);
  connection.connect(start + 6s);
  connection.greet(start + 6s);
  connection.establish();
  CHECK_FALSE(connection.server_is_dead());
}

TEST_CASE("a connection that was of use is replaced at once, others after a wait") {
  ConnectionState connection(Backoff(50ms, 1s, 1), 2s, Backoff(50ms, 1s, 1));
  connection.open(start);
  const auto establish = [&](Instant now) {
    connection.connect(now);
    connection.greet(now);
    connection.establish();
  };
  establish(start);
  connection.lose(start);
  CHECK(connection.attempt_is_due(start));
  establish(start);
  connection.lose(start);
  CHECK_FALSE(connection.attempt_is_due(start + 49ms));
  establish(start + 1s);
  connection.prove();
  connection.lose(start + 1s);
  CHECK(connection.attempt_is_due(start + 1s));
  establish(start + 1s);
  connection.prove();
  connection.distrust();
  connection.lose(start + 1s);
  CHECK_FALSE(connection.attempt_is_due(start + 1049ms));
}

}  // namespace
}  // namespace muster::client::protocol
