#pragma once

// Work that one rank does before others where there is no server and no group: by files in a folder
// that the ranks share. In the library muster-runtime (CMake: Muster::runtime). With a group, use
// muster/turns.h.

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "muster/config.h"
#include "muster/environment.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/runtime.h"
#include "muster/turns.h"

MUSTER_BEGIN_NAMESPACE

/// Options of `SignalFolder::open`. All ranks give the same job and attempt.
struct SignalFolderOptions {
  /// Tells the job apart from all others that use the folder. Empty: what the environment says,
  /// the first of TORCHELASTIC_RUN_ID (unless that is "none"), SLURM_JOB_ID with SLURM_STEP_ID,
  /// MASTER_ADDR with MASTER_PORT, SLURM_JOB_ID, MUSTER_NAMESPACE with MUSTER_STORE.
  std::string job;
  /// Tells the starts of one job apart. Empty: TORCHELASTIC_RESTART_COUNT and SLURM_RESTART_COUNT,
  /// where they are set.
  std::string attempt;
  Logger logger;  ///< is told of ranks that did not come, and of old files that were removed
};

/// A folder by whose files the ranks of a node, or of a whole job, tell each other what the first
/// of them has done. It counts the calls that use it: all ranks make the same ones, in the same
/// order.
///
/// While a call goes on, the folder has one file of it, "._signal_file_node0_" and six characters.
/// The first rank writes and removes it, and holds a lock on it, which the kernel ends with its
/// process. So what a dead process has left counts for nobody. Such files are removed after a day.
///
/// threads  one call at a time
class MUSTER_API SignalFolder {
 public:
  /// folder       made if it is not there
  /// environment  what this process was told of its place and its job
  /// errors       environment (a number of this process's place is missing or wrong, or nothing
  ///              tells the job apart from others; `detail`: which variables),
  ///              invalid_argument, permission_denied, unavailable (the folder)
  static Result<SignalFolder> open(const std::string& folder,
                                   const Environment& environment = Environment::of_process(),
                                   const SignalFolderOptions& options = {});

  /// Removes the files of this rank's calls, also those that not all ranks have read.
  ~SignalFolder();
  SignalFolder(SignalFolder&&) noexcept;
  SignalFolder& operator=(SignalFolder&&) noexcept;

  const std::string& folder() const;
  /// What tells this job and attempt apart from others, such as "TORCHELASTIC_RUN_ID=exp7,
  /// TORCHELASTIC_RESTART_COUNT=1".
  const std::string& job() const;

  class Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  explicit SignalFolder(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

namespace detail {

MUSTER_API Result<void> run_leader_first(SignalFolder& signals, Shared shared, const Work& work,
                                         const TurnOptions& options);

template <class F>
Result<typename UserWork<F>::Value> leader_first(SignalFolder& signals, Shared shared, F& work,
                                                 const TurnOptions& options) {
  UserWork<F> user(work);
  auto done = run_leader_first(
      signals, shared,
      [&](Progress& progress) {
        return user.run(progress, encode_nothing<typename UserWork<F>::Value>);
      },
      options);
  return user.give(std::move(done));
}

}  // namespace detail

/// Runs the work on local rank 0 of each node; then on the other ranks of that node. What the work
/// throws is caught, the others are told its text, and it is thrown again on its own rank; if it
/// fails on local rank 0, the others do not begin.
///
/// The others look for news about every 20 ms. They wait as long as the work tells of progress.
/// Local rank 0 returns when all of them have read how its work has ended, or after
/// `TurnOptions::arrival_max`.
///
/// work     as those of turns.h
/// returns  what this rank's work gives
/// errors   of the others: callback_failed (ranks: local rank 0; `detail`: its text), timed_out
///          (local rank 0 has not come within `arrival_max`, nothing was told for `silence_max`,
///          or `limit` has passed; `detail`: the last progress
///          and its age), rank_lost (local rank 0 has died). Of local rank 0: busy (another process
///          does the same), permission_denied, resource_exhausted, unavailable (the file could not
///          be written). Of all: invalid_argument (the options)
/// see      in place of composer's busy_wait_for_local_rank_zero
template <class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> local_rank_zero_first(
    SignalFolder& signals, F&& work, const TurnOptions& options = {}) {
  return detail::leader_first(signals, detail::Shared::node, work, options);
}

/// The same for ranks that share a file system: if MUSTER_SHARED_FS or OLMO_SHARED_FS is 1, rank 0
/// of the whole job works first; else as local_rank_zero_first.
///
/// errors  also environment (the rank or the world size is not known, or FS_LOCAL_RANK contradicts
///         them: it does not say how many ranks share files)
/// see     JobNumber::fs_local_rank
template <class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> fs_local_rank_zero_first(
    SignalFolder& signals, F&& work, const TurnOptions& options = {}) {
  return detail::leader_first(signals, detail::Shared::file_system, work, options);
}

/// A name for a file by which the ranks of one node signal each other, for hosts that write such
/// files themselves: "._signal_file_node1_" with the number of this rank's node, and six letters
/// and digits, which rank 0 of the group has drawn. Collective.
///
/// returns  the same on all ranks of a node, another one on each node and at each call
/// errors   not_initialized (the RankGroup is of no ranks), those of a collective
/// cost     one round trip
/// see      as composer's get_node_signal_file_name
MUSTER_API Result<std::string> node_signal_file_name(RankGroup& group,
                                                     Duration timeout = default_timeout);

MUSTER_END_NAMESPACE
