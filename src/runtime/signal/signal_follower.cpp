#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "client/interruption.h"
#include "muster/log.h"
#include "runtime/signal/signal_call.h"

// Who waits opens the file again and again. What stands in it counts only while its writer holds
// the lock on it: without, it is what an earlier process has left under the same name. A writer
// whose lock has ended while it worked has died. The path is then looked at once more, as the
// writer may just have replaced the file. On NFS a file may be found late or be gone in between
// (ESTALE): both are as if it were not there yet.
//
// The writer may still wait for a rank that has not read how its work of the call before has ended.
// The file of that call says so. Then that rank is missing, and not the writer, which is given as
// much time again.

namespace muster::runtime {

namespace {

constexpr std::chrono::milliseconds poll_pause(20);
constexpr int polls_per_refresh = 25;
constexpr int dead_polls_min = 2;  // in succession
constexpr std::time_t leftover_seconds_min = 24 * 60 * 60;

/// A look at the file.
struct Look {
  std::optional<SignalRecord> record;  ///< none: there is none of this call
  FileIdentity file;
  bool is_held = false;
};

/// errors  those that do not pass by themselves
Result<Look> look_at(const SignalCall& call) {
  const FileOpened opened = open_regular(call.path, O_RDONLY);
  if (opened.code == ENOENT || opened.code == ESTALE) return Look();
  if (!opened.handle) {
    return file_error(call.operation, call.path, "the signal file cannot be opened", opened.code);
  }
  // Asked first: one who dies in between is noticed at the next look.
  const int holder = holder_of(opened.handle);
  const auto bytes = content_of(opened.handle, signal_bytes_max);
  const auto file = identity_of(opened.handle);
  auto record = decode_signal(bytes.value_or(std::string()));
  if (!file || !record || !record->is_of_same_call(call.named)) return Look();
  const auto rank = static_cast<std::size_t>(call.ranks.rank);
  // Of a call of the same name that this rank has made before.
  if (rank >= record->readers.size() || record->readers[rank] == read_mark) return Look();
  const bool is_held = holder == EAGAIN || !record->is_locked;
  return Look{std::move(record), *file, is_held};
}

/// Makes NFS ask for the folder's files anew.
void refresh(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open) static_cast<void>(::readdir(open.get()));
}

/// Without the mark, the first rank waits in vain for a while, and no harm is done.
void mark_read(const SignalCall& call, FileIdentity file) {
  // O_DSYNC: so NFS writes this byte alone, and not those of other hosts around it.
  const FileOpened opened = open_regular(call.path, O_WRONLY | O_DSYNC);
  if (!opened.handle || identity_of(opened.handle) != file) return;
  const char mark = read_mark;
  static_cast<void>(
      write_at(opened.handle, std::string_view(&mark, 1), mark_position(call.ranks.rank)));
}

std::string seconds_since(SignalCall::Clock::time_point begin) {
  const auto passed = SignalCall::Clock::now() - begin;
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(passed).count()) + " s";
}

/// What one rank has heard of the one that works first.
class LeaderWait {
 public:
  explicit LeaderWait(const SignalCall& call) : call_(call), heard_at_(call.begun) {}

  Result<void> run();

 private:
  void hear(const Look& look);
  bool is_of_heard(const SignalRecord& record) const;
  bool is_dead(const Look& look);
  Result<void> ended(const Look& look) const;
  std::optional<SignalRecord> unread_before() const;
  void prolong();
  std::string last_progress() const;
  Error lost(const SignalRecord& record) const;
  Error others_missing(const SignalRecord& before) const;
  std::optional<Error> given_up() const;

  const SignalCall& call_;
  SignalCall::Clock::time_point heard_at_;
  std::optional<SignalRecord> heard_;  // of a living one
  bool is_prolonged_ = false;
  FileIdentity dead_file_;
  int dead_count_ = 0;
  bool found_leftover_ = false;
};

Result<void> LeaderWait::run() {
  client::Interruption interruption;
  for (int count = 1;; ++count) {
    auto look = look_at(call_);
    if (!look) return std::move(look).error();
    if (look->record && (look->is_held || is_of_heard(*look->record))) {
      if (look->record->phase != SignalRecord::Phase::working) return ended(*look);
      hear(*look);
    }
    if (is_dead(*look)) return lost(*look->record);
    prolong();
    if (auto error = given_up()) return *std::move(error);
    if (interruption.is_there())
      return call_.error(ErrorCode::cancelled, client::Interruption::error().detail);
    if (dead_count_ > 0 || count % polls_per_refresh == 0) refresh(call_.folder);
    std::this_thread::sleep_for(poll_pause);
  }
}

void LeaderWait::hear(const Look& look) {
  const bool is_news = !heard_ || heard_->told_count != look.record->told_count;
  if (is_news) heard_at_ = SignalCall::Clock::now();
  heard_ = look.record;
}

/// What the one that works first has written of the call before, if it lives and some have not read
/// that yet.
std::optional<SignalRecord> LeaderWait::unread_before() const {
  if (call_.path_before.empty()) return {};
  const FileOpened opened = open_regular(call_.path_before, O_RDONLY);
  if (!opened.handle || holder_of(opened.handle) != EAGAIN) return {};
  auto record = decode_signal(content_of(opened.handle, signal_bytes_max).value_or(std::string()));
  if (!record || !record->is_of_same_call(call_.named_before)) return {};
  if (record->phase == SignalRecord::Phase::working || unread_ranks(*record).empty()) return {};
  return record;
}

/// Once, and not at the beginning, when others may just be reading it.
void LeaderWait::prolong() {
  const Duration arrival_max = call_.options.arrival_max;
  if (is_prolonged_ || heard_ || SignalCall::Clock::now() - call_.begun < arrival_max / 2) return;
  const auto before = unread_before();
  if (!before) return;
  is_prolonged_ = true;
  heard_at_ += arrival_max;
  if (call_.logger) call_.logger(LogLevel::warning, others_missing(*before).message());
}

/// Whether it is of the process that was found at work: how its work has ended counts also if it is
/// gone by now.
bool LeaderWait::is_of_heard(const SignalRecord& record) const {
  return heard_ && heard_->pid == record.pid && heard_->host == record.host;
}

/// Whether it was at work in this start of the job, and is gone.
bool LeaderWait::is_dead(const Look& look) {
  if (!look.record || look.is_held) {
    dead_count_ = 0;
    return false;
  }
  found_leftover_ = true;
  if (!heard_ && !call_.is_unique) return false;
  // One that had ended in order would have removed it, or held it.
  dead_count_ = dead_count_ > 0 && dead_file_ == look.file ? dead_count_ + 1 : 1;
  dead_file_ = look.file;
  return dead_count_ >= dead_polls_min;
}

Result<void> LeaderWait::ended(const Look& look) const {
  mark_read(call_, look.file);
  if (look.record->phase == SignalRecord::Phase::done) return {};
  return call_.error(ErrorCode::callback_failed, look.record->text, &*look.record);
}

std::string LeaderWait::last_progress() const {
  if (!heard_ || heard_->told_count == 0) return "; it has told of no progress";
  return "; its last progress, " + seconds_since(heard_at_) + " ago, was '" +
         printable(heard_->text) + "'";
}

/// Names those that are missing, and not the one that has waited for them.
Error LeaderWait::others_missing(const SignalRecord& before) const {
  std::string local_ranks;
  std::vector<RankRange> world_ranks;
  for (const int rank : unread_ranks(before)) {
    local_ranks += (local_ranks.empty() ? "" : ", ") + std::to_string(rank);
    base::add_to(world_ranks, before.world_rank + rank);
  }
  Error error = call_.error(
      ErrorCode::timed_out,
      "local rank 0 lives (pid " + std::to_string(before.pid) + " on " + printable(before.host) +
          "), but local ranks " + local_ranks + " have not read how its work of " +
          "the call before has ended: see whether they live; all ranks make the same calls",
      &before);
  error.ranks.clear();
  // Where ranks of the node follow each other in the job.
  const SignalRanks& own = call_.ranks;
  const bool are_known = before.world_rank >= 0 && own.world_rank - own.rank == before.world_rank;
  error.rank_ranges = are_known ? world_ranks : std::vector<RankRange>();
  for (const RankRange& range : error.rank_ranges)
    for (int rank = range.first; rank <= range.last && error.ranks.size() < 64; ++rank)
      error.ranks.emplace_back().rank = rank;
  return error;
}

Error LeaderWait::lost(const SignalRecord& record) const {
  return call_.error(ErrorCode::rank_lost,
                     "it holds the lock on its file no more: it has died" + last_progress(),
                     &record);
}

std::optional<Error> LeaderWait::given_up() const {
  const auto now = SignalCall::Clock::now();
  const TurnOptions& options = call_.options;
  const bool is_silent = now - heard_at_ >= (heard_ ? options.silence_max : options.arrival_max);
  if (!is_silent && now - call_.begun < options.limit) return {};
  if (!heard_) {
    if (const auto before = unread_before()) return others_missing(*before);
    return call_.error(ErrorCode::timed_out,
                       "it has not come: for " + seconds_since(call_.begun) +
                           (found_leftover_ ? " its file was only what a dead process has left"
                                            : " its file was not there") +
                           "; all ranks make the same calls, with one folder that they share, as " +
                           call_.named.job);
  }
  return call_.error(ErrorCode::timed_out,
                     (is_silent ? "its work has told nothing for " + seconds_since(heard_at_)
                                : "it has not ended within the limit; it has worked for " +
                                      seconds_since(call_.begun)) +
                         last_progress(),
                     &*heard_);
}

bool is_leftover(const FileOpened& opened, std::time_t now) {
  struct ::stat status {};
  if (!opened.handle || ::fstat(opened.handle.get(), &status) != 0) return false;
  if (now - status.st_mtime < leftover_seconds_min || holder_of(opened.handle) != 0) return false;
  // A host may have files of such names of its own. An empty one was left by a process that has
  // died before it wrote.
  const auto bytes = content_of(opened.handle, signal_bytes_max).value_or(std::string());
  return bytes.empty() || begins_as_signal(bytes);
}

}  // namespace

Error SignalCall::error(ErrorCode code, std::string detail, const SignalRecord* leader) const {
  Error error = base::failure(code, std::move(detail));
  error.operation = operation;
  error.decided_by = "client";
  error.where = path;
  error.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - begun);
  RankReport report;
  if (code == ErrorCode::rank_lost) error.cause = report.cause = LossCause::closed;
  report.rank = leader != nullptr ? leader->world_rank : ranks.is_job ? 0 : -1;
  if (report.rank < 0) {
    error.detail = "local rank 0 of node " + std::to_string(ranks.node_rank) + ": " + error.detail;
    return error;
  }
  if (leader != nullptr) {
    report.joined = true;
    report.process.host = leader->host;
    report.process.pid = leader->pid;
  }
  error.rank_ranges = {{report.rank, report.rank}};
  error.ranks.push_back(std::move(report));
  return error;
}

Result<void> await_leader(const SignalCall& call) { return LeaderWait(call).run(); }

std::vector<std::string> sweep_signals(const std::string& folder) {
  std::vector<std::string> removed;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  const std::time_t now = std::time(nullptr);
  while (const ::dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    constexpr std::string_view unfinished = ".new";
    const std::string name = entry->d_name;
    std::string_view signal = name;
    if (signal.size() > unfinished.size() &&
        signal.substr(signal.size() - unfinished.size()) == unfinished)
      signal.remove_suffix(unfinished.size());
    if (!is_signal_file_name(signal)) continue;
    const FilePlace place = FilePlace::of(folder + "/" + name);
    const FileOpened opened = place.open(O_RDONLY);
    if (is_leftover(opened, now) && place.remove(opened.handle) == 0) removed.push_back(name);
  }
  return removed;
}

}  // namespace muster::runtime
