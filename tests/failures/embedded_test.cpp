#include <atomic>
#include <new>

#include <doctest/doctest.h>

#include "failures/failing_calls.h"
#include "failures/scenario.h"
#include "failures/shard.h"
#include "muster/server.h"

// A server and its clients in one process, in which one call of the system fails.

namespace muster::test {
namespace {

using namespace std::chrono_literals;

struct Run {
  Story story;
  Failed failed;
  bool has_server = false;
  bool server_has_failed = false;
  bool server_serves = false;
};

Result<Server> start(ServerOptions options) {
  try {
    const Exempt counts(false);
    return Server::start(std::move(options));
  } catch (const std::bad_alloc&) {  // not even an error can be made
    return Error();
  }
}

Run run(FailurePlan plan) {
  const Exempt own;
  Run run;
  std::atomic<bool> has_failed{false};
  ServerOptions options;
  options.session_timeout = 5s;
  options.heartbeat = 500ms;
  options.grace = 100ms;
  options.on_failure = [&has_failed](const Error&) { has_failed = true; };
  begin_failing(plan);
  {
    auto server = start(std::move(options));
    run.has_server = server.has_value();
    if (server) run.story = play(server->addresses().front(), timeout_of(plan));
    run.failed = end_failing();
    if (server) run.server_serves = serves(server->addresses().front());
    run.server_has_failed = has_failed;
  }
  end_failing();
  return run;
}

bool is_clear(const Error& error) {
  switch (error.code) {
    case ErrorCode::resource_exhausted:  // here, or at the server
    case ErrorCode::outcome_unknown:
    case ErrorCode::unavailable:
    case ErrorCode::suspended:
    case ErrorCode::busy:
    case ErrorCode::session_expired:
    // Of the other rank, or what this one has done in vain since.
    case ErrorCode::timed_out:
    case ErrorCode::not_found:
    case ErrorCode::rank_lost:
    case ErrorCode::rank_left:
    case ErrorCode::sequence_gap:
    case ErrorCode::stale_epoch:
    case ErrorCode::collective_mismatch:  // one of them had no memory to begin with
    case ErrorCode::closed: return true;
    default: return false;
  }
}

void check(FailurePlan plan, const Run& run) {
  INFO(text_of(plan), ": ", run.failed.where);
  for (const std::string& wrong : run.story.wrongs) CHECK_MESSAGE(false, wrong);
  // With several in a row there may be nothing left to call a handler with.
  for (const std::string& call : run.story.unheard) CHECK_MESSAGE(plan.in_a_row > 1, call);
  for (const Error& error : run.story.errors) CHECK_MESSAGE(is_clear(error), error.message());
  // It serves, or has refused to start, or has ended and said so.
  if (run.has_server) CHECK(run.server_serves != run.server_has_failed);
  if (!run.failed.has_failed && plan.which != 0) CHECK(run.story.errors.empty());
}

std::uint64_t count_of(Fails what) {
  const Run whole = run({what, ~std::uint64_t{0}});
  check({what, ~std::uint64_t{0}}, whole);
  CHECK(whole.story.call_count > 50);
  REQUIRE(whole.failed.seen_count > 0);
  MESSAGE(whole.failed.seen_count, " calls");
  return whole.failed.seen_count;
}

void each_fails(Fails what, std::uint64_t in_a_row) {
  const std::uint64_t count = count_of(what);
  for (const std::uint64_t which : of_this_shard(count)) {
    const FailurePlan plan{what, which, in_a_row};
    check(plan, run(plan));
  }
}

}  // namespace

TEST_CASE("each allocation fails once") { each_fails(Fails::allocation, 1); }
TEST_CASE("each allocation fails, and the next three with it") { each_fails(Fails::allocation, 4); }
TEST_CASE("each socket call is refused memory once") { each_fails(Fails::no_memory, 1); }
TEST_CASE("each descriptor is refused once") { each_fails(Fails::no_descriptor, 1); }
TEST_CASE("each transfer meets a reset once") { each_fails(Fails::connection_reset, 1); }

TEST_CASE("each call that waits is interrupted once, and nobody notices") {
  const std::uint64_t count = count_of(Fails::interrupted);
  for (const std::uint64_t which : of_this_shard(count)) {
    const Run interrupted = run({Fails::interrupted, which});
    check({Fails::interrupted, which}, interrupted);
    CHECK(interrupted.story.errors.empty());
  }
}

TEST_CASE("every transfer takes one byte, and nobody notices") {
  const Run slow = run({Fails::one_byte, 0});
  check({Fails::one_byte, 0}, slow);
  for (const Error& error : slow.story.errors) CHECK_MESSAGE(false, error.message());
}

}  // namespace muster::test
