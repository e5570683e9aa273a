#include <signal.h>

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "failures/failing_calls.h"
#include "failures/key_file.h"
#include "failures/scenario.h"
#include "failures/shard.h"
#include "support/process.h"

// musterd, in which one call of the system fails while two ranks use it.

namespace muster::test {
namespace {

struct Run {
  bool has_started = false;
  Story story;
  bool server_serves = false;
  Ending ending;
  std::string errors;
  std::uint64_t seen_count = 0;
  bool has_struck = false;
};

std::uint64_t seen_in(const std::string& errors) {
  const std::string mark = "failing: ";
  const auto at = errors.rfind(mark);
  return at == std::string::npos ? 0
                                 : std::strtoull(errors.c_str() + at + mark.size(), nullptr, 10);
}

/// It says where the failure struck.
bool has_struck_in(const std::string& errors) {
  const auto at = errors.rfind(" seen; ");
  return at != std::string::npos && errors.compare(at, 8, " seen; \n") != 0;
}

Run run(FailurePlan plan) {
  Process::Options options;
  // Byte by byte a request may take seconds on a busy machine; that is not a silent server.
  const std::string session_timeout = plan.what == Fails::one_byte ? "60s" : "5s";
  options.command = {std::getenv("MUSTERD_FAILING"), "--listen=127.0.0.1:0", "--grace=100ms",
                     "--session-timeout=" + session_timeout, "--heartbeat=500ms"};
  if (!key_file().empty()) options.command.push_back("--credentials=" + key_file());
  options.environment = {{"MUSTER_TEST_FAILS", text_of(plan)}};
  Process musterd(options);
  Run run;
  const auto line = musterd.read_line();
  const std::string before = "musterd listening on ";
  run.has_started = line.has_value() && line->rfind(before, 0) == 0;
  if (run.has_started) {
    const std::string address = line->substr(before.size());
    run.story = play(address, timeout_of(plan));
    run.server_serves = serves(address);
    musterd.send_signal(SIGTERM);
  }
  run.ending = musterd.wait();
  run.errors = musterd.read_errors();
  run.seen_count = seen_in(run.errors);
  run.has_struck = has_struck_in(run.errors);
  return run;
}

/// A run that shows something.
Run telling_run(FailurePlan plan) {
  return repeated_while_void(
      [plan] { return run(plan); },
      [](const Run& run) { return !run.has_struck && was_only_late(run.story); });
}

/// What holds whether the server lived on or not.
void check_promises(const Run& run) {
  for (const std::string& wrong : run.story.wrongs) CHECK_MESSAGE(false, wrong);
  for (const std::string& call : run.story.unheard) CHECK_MESSAGE(false, call);
  for (const std::string& call : run.story.speechless) CHECK_MESSAGE(false, call);
}

/// Ends with what is wrong with a run in which the server was to live on.
void check_survived(const Run& run) {
  check_promises(run);
  CHECK(run.server_serves);
  CHECK(run.ending.exit_code == 0);
}

/// It did not start and said why: no client was ever let in.
void check_refused(const Run& run) {
  check_promises(run);
  CHECK(run.ending.exit_code == 1);
  CHECK(run.errors.find("musterd: ") != std::string::npos);
  CHECK(run.has_struck);
  CHECK(run.story.success_count == 0);
  for (const Error& error : run.story.errors) {
    CHECK_MESSAGE(error.code == ErrorCode::unavailable, error.message());
  }
}

/// OpenSSL has gone on without an algorithm that it could not load at the start.
bool lets_nobody_in(const Run& run) {
  return run.has_started && !run.server_serves && run.story.success_count == 0;
}

std::uint64_t count_of(Fails what) {
  const Run whole = telling_run({what, ~std::uint64_t{0}});
  check_survived(whole);
  CHECK(whole.story.errors.empty());
  REQUIRE(whole.seen_count > 0);
  MESSAGE(whole.seen_count, " calls");
  return whole.seen_count;
}

template <class Check>
void each_fails_once(Fails what, const Check& check) {
  Tally tally;
  for (const FailurePlan plan : plans(what, 1, count_of(what))) {
    const Run failed = telling_run(plan);
    INFO(failed.errors, "\nagain: ", again(plan));
    ++tally.planned;
    tally.struck += failed.has_struck ? 1 : 0;
    // What the listener needs is asked for when the address has been told.
    const bool has_refused = what != Fails::allocation && failed.ending.exit_code == 1;
    if (what == Fails::openssl && lets_nobody_in(failed)) {
      check_promises(failed);
      CHECK(failed.ending.exit_code == 0);
      ++tally.refused;
    } else if (failed.has_started && !has_refused) {
      check_survived(failed);
      for (const Error& error : failed.story.errors) check(error);
    } else {
      check_refused(failed);
      ++tally.refused;
    }
  }
  tally.check(0.1, 0);
}

void is_refused_for_now(const Error& error) {
  CHECK_MESSAGE(error.code == ErrorCode::resource_exhausted, error.message());
}

/// A connection was lost that was not back within the grace, and the other rank waited in vain.
void is_of_one_connection(const Error& error) {
  switch (error.code) {
    case ErrorCode::outcome_unknown:
    case ErrorCode::timed_out:
    case ErrorCode::rank_lost:
    case ErrorCode::session_expired: return;
    default: CHECK_MESSAGE(false, error.message());
  }
}

void is_unnoticed(const Error& error) { CHECK_MESSAGE(false, error.message()); }

}  // namespace

TEST_CASE("musterd survives that any allocation fails") {
  each_fails_once(Fails::allocation, is_refused_for_now);
}

TEST_CASE("musterd survives that any allocation of OpenSSL fails, or does not start" *
          doctest::skip(!is_tls())) {
  each_fails_once(Fails::openssl, is_of_one_connection);
}

TEST_CASE("musterd survives that any socket call is refused memory, or does not start") {
  each_fails_once(Fails::no_memory, is_of_one_connection);
}

TEST_CASE("musterd survives that any descriptor is refused, or does not start") {
  each_fails_once(Fails::no_descriptor, is_of_one_connection);
}

TEST_CASE("musterd survives that any transfer meets a reset") {
  each_fails_once(Fails::connection_reset, is_of_one_connection);
}

TEST_CASE("nobody notices that calls of musterd are interrupted") {
  each_fails_once(Fails::interrupted, is_unnoticed);
}

TEST_CASE("nobody notices that every transfer of musterd takes one byte") {
  const Run slow = run({Fails::one_byte, 0});
  check_survived(slow);
  for (const Error& error : slow.story.errors) is_unnoticed(error);
}

}  // namespace muster::test
