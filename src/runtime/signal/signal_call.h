#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/forked.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/turns.h"
#include "runtime/shared/locked_file.h"
#include "runtime/signal/signal_job.h"
#include "runtime/signal/signal_record.h"
#include "runtime/turn.h"

namespace muster::runtime {

/// One call of signal_file.h on one rank, as far as all its parts know it.
struct SignalCall {
  using Clock = std::chrono::steady_clock;

  std::string operation;
  std::string folder;
  std::string path;    ///< of its file
  SignalRecord named;  ///< of which call it is
  bool is_unique = false;
  SignalRanks ranks;
  TurnOptions options;
  Logger logger;
  /// The last call of this SignalFolder, if it was for the same ranks.
  std::string path_before;
  SignalRecord named_before;
  Clock::time_point begun = Clock::now();

  /// An error that tells of the rank that works first.
  ///
  /// leader  what it has written; null: nothing
  Error error(ErrorCode code, std::string detail, const SignalRecord* leader = nullptr) const;
};

/// The file of one call, on the rank that works first.
///
/// threads  one call at a time
class LeaderFile {
 public:
  explicit LeaderFile(SignalCall call);
  /// Removes it.
  ~LeaderFile();
  LeaderFile(const LeaderFile&) = delete;
  LeaderFile& operator=(const LeaderFile&) = delete;

  /// Writes that the work begins.
  ///
  /// errors  busy, and those of files
  Result<void> begin();
  Result<void> tell(std::uint64_t told_count, std::string_view text);
  Result<void> end(const detail::TurnOutcome& outcome);

  /// Who has not read yet how the work has ended.
  std::vector<int> missing() const;
  /// Waits until all have, or `arrival_max` has passed.
  std::vector<int> await_readers() const;
  const SignalCall& call() const { return call_; }

 private:
  Result<void> write();

  const base::Owner process_;
  const SignalCall call_;
  const FilePlace place_;  // of its path
  SignalRecord record_;
  base::FileHandle file_;  // locked
};

/// Writes the last text that a work tells, from a thread of its own: a file may block.
///
/// threads  any
class FileProgress final : public Progress::Impl {
 public:
  FileProgress(LeaderFile& file, Duration pause) : file_(file), pause_(pause) {}
  ~FileProgress() override { end(); }

  void tell(std::string_view text) override;
  /// Nothing is written any more.
  void end();

 private:
  void run();

  const base::Owner process_;
  LeaderFile& file_;
  const Duration pause_;  // between two writes
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t told_count_ = 0;
  std::uint64_t written_count_ = 0;
  bool is_over_ = false;
  std::string text_;
  std::thread writer_;
};

/// Progress that nobody waits for.
class UnheardProgress final : public Progress::Impl {
 public:
  void tell(std::string_view) override {}
};

/// Waits on another rank until the work of the first one has ended.
///
/// errors  timed_out, rank_lost, callback_failed, and those of files
Result<void> await_leader(const SignalCall& call);

/// Removes the files that processes have left in the folder a day ago, and that nobody holds.
///
/// returns  their names
std::vector<std::string> sweep_signals(const std::string& folder);

}  // namespace muster::runtime
