#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "nccl/functions.h"
#include "nccl/gpu/bare.h"
#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"
#include "support/let_pass.h"

// Check 6: rank 1 is killed while its all_reduce runs. All ranks are processes of one machine, so
// they have one clock.

namespace muster::test::gpu {
namespace {

constexpr int lost_rank = 1;

Clock::time_point time_of(const std::string& text) {
  return Clock::time_point(Clock::duration(std::atoll(text.c_str())));
}

/// Several all_reduces one behind the other, which both ranks have called; then rank 1 dies, and
/// this gives the time.
class Death {
 public:
  explicit Death(Rank& rank)
      : rank_(rank), stream_(rank.driver()), memory_(rank.driver(), rank.bytes()) {}

  Clock::time_point befall(Communicator& communicator, StatelessProcessGroup& group) {
    require(group.barrier());
    const Sum sum = large_sum(memory_, stream_, rank_.bytes());
    for (long index = 0; index < rank_.number("queued"); ++index) require(sum.over(communicator));
    if (rank_.index() != lost_rank) {
      require(rank_.store().set("all called", ""));
      return time_of(require(rank_.store().get("died", patience)));
    }
    require(rank_.store().get("all called", patience));
    let_pass(rank_.ms("delay_ms"));
    rank_.expect(!stream_.is_idle(), "the all_reduces were over before rank 1 was killed");
    require(rank_.store().set("died", std::to_string(Clock::now().time_since_epoch().count())));
    ::raise(SIGKILL);
    return {};
  }
  const Stream& stream() const { return stream_; }

 private:
  Rank& rank_;
  const Stream stream_;
  const Memory memory_;
};

bool is_loss(const Error& error) {
  return error.code == ErrorCode::rank_lost &&
         error.rank_ranges == std::vector<RankRange>{{lost_rank, lost_rank}};
}

}  // namespace

// As a host does that waits for its stream.
void killed_peer(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  Death death(rank);
  const auto died = death.befall(communicator, group);
  std::optional<Error> error;
  while (!error && ms_since(died) < 1000.0 * patience.count()) {
    let_pass(1ms);
    error = communicator.error();
  }
  rank.figure("from the death to error()", ms_since(died), "ms");
  rank.expect(error.has_value(), "error() told of nothing for 60 s");
  if (error) rank.expect(is_loss(*error), "error() told of another thing: " + error->message());
  rank.expect(death.stream().is_idle_within(10s), "the stream was not idle 10 s later");
  rank.figure("to an idle stream", ms_since(died), "ms");
}

// What NCCL says by itself: nothing is aborted meanwhile, and nobody asks `error()`.
void killed_peer_of_nccl(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  std::atomic<Clock::rep> told{0};
  std::atomic<bool> is_right{false};
  nccl::Options options = rank.options();
  options.on_loss = OnLoss::notify;
  options.on_end = [&](const Error& error) {
    if (is_loss(error)) is_right = true;
    Clock::rep none = 0;
    told.compare_exchange_strong(none, Clock::now().time_since_epoch().count());
  };
  auto communicator = rank.create(group, options);
  auto* const handle = require(nccl::native_handle(communicator));
  const auto ask = nccl_functions(rank).comm_get_async_error;
  Death death(rank);
  const auto died = death.befall(communicator, group);
  int state = 0;
  double noticed_ms = 0;
  const auto listens_until = died + rank.ms("listen_ms");
  while (told == 0 || (state == 0 && Clock::now() < listens_until)) {
    if (ms_since(died) > 1000.0 * patience.count())
      throw Failure("nobody told of the loss in 60 s");
    let_pass(1ms);
    if (state != 0) continue;
    must(ask(handle, &state), "ncclCommGetAsyncError");
    if (state == nccl_internal::in_progress) state = 0;
    if (state != 0) noticed_ms = ms_since(died);
  }
  const auto told_after = Clock::time_point(Clock::duration(told.load())) - died;
  rank.figure("from the death to on_end",
              std::chrono::duration<double, std::milli>(told_after).count(), "ms");
  if (state != 0) rank.figure("to NCCL's own " + std::to_string(state), noticed_ms, "ms");
  rank.expect(is_right, "on_end did not tell that rank 1 was lost");
  communicator.abort();
  rank.expect(death.stream().is_idle_within(10s), "the stream was not idle 10 s after the abort");
}

}  // namespace muster::test::gpu
