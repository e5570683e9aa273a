#include "runtime/tensor/shared_steps.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

#include <climits>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "client/interruption.h"
#include "muster/codec.h"

// The memory's life: rank 0 makes a segment and tells its name; the others open it; when all have
// told that they did, the name goes, so nothing is left behind when processes die.
//
// A step: each rank writes its part, of which there are two, used in turn, and counts itself in the
// state. The one that completes the count begins the next step and wakes the others. While a rank
// reads the parts of a step, others can be at most one step ahead, and write the other parts.
//
// Its end: a rank that gives up puts its number into the state in place of the count, if the step
// has not been completed. Both change the same word, so a step has one outcome for all ranks. All
// later exchanges of all ranks fail, and the ranks make new memory if they go on.

namespace muster::runtime {

namespace {

using State = std::atomic<std::uint64_t>;

constexpr std::string_view purpose_of_files = "steps";

// A state: whether it is over, the steps that were completed, and how many ranks have arrived at
// the next one, or who has ended it.
constexpr std::uint64_t over_bit = std::uint64_t{1} << 63;
constexpr std::uint64_t state_of(std::uint32_t steps, std::uint32_t count) {
  return std::uint64_t{steps & 0x7fffffffU} << 32 | count;
}
constexpr std::uint32_t steps_of(std::uint64_t state) {
  return static_cast<std::uint32_t>(state >> 32) & 0x7fffffffU;
}
constexpr std::uint32_t count_of(std::uint64_t state) { return static_cast<std::uint32_t>(state); }

/// Sleeps in shared memory until the word is woken, or may be; at most so long.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration wait) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(seconds.count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds(wait - seconds).count());
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

void wake_all(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// How often a rank looks before it sleeps. With a processor for each rank the others are about to
/// come; with fewer a rank that looks would keep them from coming.
int spins_for(int world_size) {
  cpu_set_t allowed;
  const int processors =
      ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return world_size <= processors ? 2000 : 0;
}

/// How long a rank sleeps before it looks whether the group has ended: a notice can slip in between
/// its look and its sleep.
constexpr Duration look_again = std::chrono::milliseconds(100);

constexpr std::size_t line_bytes = 64;
/// Between two parts: so that the same places of parts are on different places of pages. Processors
/// take a load for one of what was just stored if these are the same.
constexpr std::size_t stagger_bytes = 3 * line_bytes;

/// So that the memory of a group stays below what containers give by default (64 MiB).
std::size_t part_bytes_for(int world_size) {
  constexpr std::size_t all_bytes = std::size_t{32} << 20;
  const std::size_t each = all_bytes / (2 * static_cast<std::size_t>(world_size));
  constexpr std::size_t least = std::size_t{64} << 10;
  constexpr std::size_t most = std::size_t{1} << 20;
  return std::clamp(each, least, most) / 4096 * 4096;
}

}  // namespace

/// Of one rank, written by it alone.
struct alignas(line_bytes) SharedSteps::Cell {
  std::atomic<std::uint32_t> arrived_at;  ///< a step
  std::atomic<std::uint32_t> end_code;    ///< why it has ended all
  std::atomic<std::uint64_t> bytes[2];    ///< of its parts
};

struct SharedSteps::Memory {
  alignas(line_bytes) State state;
  alignas(line_bytes) std::atomic<std::uint32_t> turn;  ///< on which ranks sleep
};

SharedSteps::SharedSteps(StatelessProcessGroup& group, SharedSegment segment,
                         std::size_t part_bytes)
    : group_(group),
      segment_(std::move(segment)),
      part_bytes_(part_bytes),
      spins_(spins_for(group.world_size())),
      notice_(std::make_shared<Notice>()) {
  // The memory outlives the watch, which ends before it.
  watch_ = group_.watch([notice = notice_, &turn = memory().turn](const Error& error) {
    {
      const std::lock_guard lock(notice->mutex);
      if (notice->error) return;
      notice->error = error;
    }
    notice->is_there.store(true, std::memory_order_release);
    wake_all(turn);
  });
}

std::size_t SharedSteps::bytes_of(int world_size, std::size_t part_bytes) {
  const auto ranks = static_cast<std::size_t>(world_size);
  const std::size_t heads = sizeof(Memory) + ranks * sizeof(Cell);
  return (heads + 4095) / 4096 * 4096 + 2 * ranks * (part_bytes + stagger_bytes);
}

SharedSteps::Memory& SharedSteps::memory() const {
  return *reinterpret_cast<Memory*>(segment_.data());
}

SharedSteps::Cell& SharedSteps::cell(int rank) const {
  return reinterpret_cast<Cell*>(segment_.data() + sizeof(Memory))[rank];
}

char* SharedSteps::part_of(int rank, std::uint32_t step) const {
  const std::size_t each = part_bytes_ + stagger_bytes;
  const auto ranks = static_cast<std::size_t>(group_.world_size());
  char* const parts = segment_.data() + segment_.size() - 2 * ranks * each + line_bytes;
  return parts + (2 * static_cast<std::size_t>(rank) + step % 2) * each;
}

Result<SharedSteps::Made> SharedSteps::make(StatelessProcessGroup& group,
                                            Clock::time_point deadline) {
  const auto left = [deadline] {
    return std::max(Duration(1), std::chrono::duration_cast<Duration>(deadline - Clock::now()));
  };
  const std::size_t part_bytes = part_bytes_for(group.world_size());
  const std::size_t bytes = bytes_of(group.world_size(), part_bytes);
  const std::string folder(shared_memory_folder);
  Result<SharedSegment> segment = base::failure(ErrorCode::internal, {});
  // What rank 0 tells: "+" and a name, or "-" and why there is none.
  std::string told;
  if (group.rank() == 0) {
    segment = SharedSegment::create(folder, purpose_of_files, bytes);
    told = segment ? "+" + segment->name() : "-" + segment.error().detail;
  }
  auto name = group.broadcast_bytes(told, codec_id::tensor, Rank(0), left());
  if (!name) return std::move(name).error();
  if (name->empty() || name->front() != '+')
    return Made{nullptr,
                "rank 0 cannot make memory to share: " + name->substr(name->empty() ? 0 : 1)};
  const std::string_view file = std::string_view(*name).substr(1);
  if (group.rank() != 0) {
    segment = is_name_of(file, purpose_of_files)
                  ? SharedSegment::open(folder, file, bytes)
                  : base::failure(ErrorCode::protocol_error, "rank 0 gave no name of such memory");
  }
  auto outcomes = group.all_gather_bytes(segment ? std::string() : segment.error().detail + " ",
                                         codec_id::tensor, left());
  if (group.rank() == 0 && segment) segment->unlink();
  if (!outcomes) return std::move(outcomes).error();
  for (std::size_t rank = 0; rank < outcomes->size(); ++rank) {
    if ((*outcomes)[rank].empty()) continue;
    return Made{nullptr, "rank " + std::to_string(rank) +
                             " cannot open the memory that rank 0 has made: " + (*outcomes)[rank]};
  }
  return Made{std::unique_ptr<SharedSteps>(new SharedSteps(group, *std::move(segment), part_bytes)),
              {}};
}

char* SharedSteps::own_part(std::size_t) { return part_of(group_.rank(), step_ + 1); }

std::string_view SharedSteps::part(int rank) const {
  // What a broken process writes there may be any number.
  const std::uint64_t bytes = cell(rank).bytes[step_ % 2].load(std::memory_order_relaxed);
  return {part_of(rank, step_),
          static_cast<std::size_t>(std::min<std::uint64_t>(bytes, part_bytes_))};
}

bool SharedSteps::is_over() const {
  return (memory().state.load(std::memory_order_acquire) & over_bit) != 0 ||
         notice_->is_there.load(std::memory_order_acquire);
}

std::optional<Error> SharedSteps::end_to_come() {
  const std::uint64_t found = memory().state.load(std::memory_order_acquire);
  if ((found & over_bit) == 0 || has_failed_) return {};
  Error why = ended_by(static_cast<int>(count_of(found)), step_ + 1);
  if (why.code == ErrorCode::interrupted) return {};
  return why;
}

Result<void> SharedSteps::exchange(std::size_t bytes, Clock::time_point deadline) {
  const std::uint32_t step = step_ + 1;
  Cell& own = cell(group_.rank());
  own.bytes[step % 2].store(bytes, std::memory_order_relaxed);
  own.arrived_at.store(step, std::memory_order_relaxed);
  if (!arrive(step)) {
    if (auto waited = wait_for(step, deadline); !waited) {
      has_failed_ = true;
      return waited;
    }
  }
  step_ = step;
  return {};
}

/// returns  whether all ranks have come
bool SharedSteps::arrive(std::uint32_t step) {
  State& state = memory().state;
  const auto all = static_cast<std::uint32_t>(group_.world_size());
  std::uint64_t found = state.load(std::memory_order_acquire);
  for (;;) {
    if ((found & over_bit) != 0) return false;
    const bool is_last = count_of(found) + 1 == all;
    const std::uint64_t next =
        is_last ? state_of(step, 0) : state_of(steps_of(found), count_of(found) + 1);
    if (!state.compare_exchange_weak(found, next, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      continue;
    if (!is_last) return false;
    memory().turn.store(step, std::memory_order_release);
    wake_all(memory().turn);
    return true;
  }
}

Result<void> SharedSteps::wait_for(std::uint32_t step, Clock::time_point deadline) {
  const State& state = memory().state;
  client::Interruption interruption;
  for (int spin = 0;; ++spin) {
    const std::uint32_t turn = memory().turn.load(std::memory_order_acquire);
    const std::uint64_t found = state.load(std::memory_order_acquire);
    const bool is_over = (found & over_bit) != 0;
    // A step later cannot be complete, because this rank has not come there.
    if (steps_of(found) == (step & 0x7fffffffU)) return {};
    if (is_over) return ended_by(static_cast<int>(count_of(found)), step);
    if (auto error = noticed()) return give_up(step, *std::move(error));
    if (spin < spins_) continue;
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return give_up(step, timed_out(step, group_.rank()));
    if (interruption.is_there()) return give_up(step, client::Interruption::error());
    if (turn == step) continue;
    sleep_on(memory().turn, turn,
             interruption.cut(std::min(
                 look_again, std::chrono::duration_cast<Duration>(deadline - now) + Duration(1))));
  }
}

Result<void> SharedSteps::give_up(std::uint32_t step, Error why) {
  State& state = memory().state;
  cell(group_.rank()).end_code.store(static_cast<std::uint32_t>(why.code));
  std::uint64_t found = state.load(std::memory_order_acquire);
  for (;;) {
    if (steps_of(found) == (step & 0x7fffffffU)) return {};
    if ((found & over_bit) != 0) return ended_by(static_cast<int>(count_of(found)), step);
    const std::uint64_t over =
        over_bit | state_of(steps_of(found), static_cast<std::uint32_t>(group_.rank()));
    if (state.compare_exchange_weak(found, over, std::memory_order_acq_rel,
                                    std::memory_order_acquire))
      break;
  }
  memory().turn.fetch_add(1U << 30, std::memory_order_release);
  wake_all(memory().turn);
  return why;
}

/// What this rank says of an end that another one has decided.
Error SharedSteps::ended_by(int rank, std::uint32_t step) {
  const bool is_rank = rank >= 0 && rank < group_.world_size();
  const auto code =
      is_rank ? static_cast<ErrorCode>(cell(rank).end_code.load()) : ErrorCode::internal;
  if (code == ErrorCode::timed_out) return timed_out(step, rank);
  // It has been told that the group has ended; this rank is about to be told the same.
  const Clock::time_point give_up_at = Clock::now() + std::chrono::seconds(2);
  while (code != ErrorCode::cancelled && Clock::now() < give_up_at) {
    if (auto error = noticed()) return *std::move(error);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Error error = timed_out(step, rank);
  error.code = code;
  error.detail = "rank " + std::to_string(rank) + " has ended it: " + std::string(name_of(code));
  return error;
}

Error SharedSteps::timed_out(std::uint32_t step, int decided_by) const {
  Error error = base::failure(ErrorCode::timed_out,
                              "the ranks share memory, and these have not come to this step of it");
  error.decided_by = "rank " + std::to_string(decided_by);
  error.decided_by_rank = decided_by;
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (cell(rank).arrived_at.load(std::memory_order_relaxed) == step) continue;
    base::add_to(error.rank_ranges, rank);
    if (error.ranks.size() < 64) error.ranks.emplace_back().rank = rank;
  }
  if (error.rank_ranges.empty()) {
    error.detail =
        "the ranks share memory; all have come to this step of it, the last ones when "
        "rank " +
        std::to_string(decided_by) + " had given it up";
  }
  return error;
}

std::optional<Error> SharedSteps::noticed() const {
  if (!notice_->is_there.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(notice_->mutex);
  return notice_->error;
}

}  // namespace muster::runtime
