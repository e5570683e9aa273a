#pragma once

// What ranks share through memory of their host, or through a folder: states of a configuration and
// tensors. In the library muster-runtime (CMake: Muster::runtime).

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/result.h"
#include "muster/runtime.h"
#include "muster/span.h"
#include "muster/tensor.h"
#include "muster/turns.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Describes a state that belongs to somebody else, who keeps it while it is used.
struct SharedStateView {
  std::string_view config;               ///< any bytes, such as JSON
  std::vector<NamedTensorView> tensors;  ///< in host memory; in any order, which is kept
};

/// A state with its memory.
struct SharedState {
  std::string config;
  std::vector<NamedTensor> tensors;

  MUSTER_API SharedStateView view() const;
};

/// Options of `SharedWorkspace::read`.
struct SharedReadOptions {
  /// Another generation counts as not there. Equal ones: exactly this one.
  std::uint64_t generation_min = 0;
  std::uint64_t generation_max = std::numeric_limits<std::uint64_t>::max();
  Duration timeout{0};  ///< how long to wait for the file; 0: not at all
};

/// A folder that all ranks see, in which each rank leaves its state for the others. The names of
/// files tell the rank alone: the folder is that of one job.
///
/// A reader gets a state as it was written, or an error, also on NFS: a state is written to another
/// file, which takes its name when all of it is at the server. Runs that use one folder again tell
/// their states apart by the generation.
///
/// errors   of all: not_initialized (there is no folder), permission_denied, resource_exhausted
///          (the disk or the memory is full), invalid_argument (the folder cannot be used),
///          unavailable (the file system failed)
/// threads  one call at a time
/// see      docs/runtime.md "What ranks share"; as ModelOpt's NFSWorkspace
class MUSTER_API SharedWorkspace {
 public:
  SharedWorkspace() = default;  ///< without a folder
  /// Touches no file.
  ///
  /// folder  none: every call is an error
  /// rank    of this process; it alone writes the file of this rank
  SharedWorkspace(std::optional<std::string> folder, int rank);

  bool is_initialized() const { return folder_.has_value(); }

  /// Writes this rank's state in place of its last one. Makes the folder, if it is missing.
  ///
  /// Blocks until the state is on the disk, or at the server of the folder.
  ///
  /// generation  such as a step; greater than in earlier runs in this folder
  /// errors      also too_large; the last state is still there, unless `happened` is maybe
  Result<void> write(std::uint64_t generation, const SharedStateView& state);

  /// Reads the state of a rank, also of this one.
  ///
  /// returns  the state, in memory of its own
  /// errors   also not_found (there is none of these generations, or not in time), codec_failure
  ///          (ranks: whose file is cut, damaged, or no such file)
  /// cost     while it waits, the folder is looked at up to ten times a second
  Result<SharedState> read(int rank, const SharedReadOptions& options = {}) const;

  /// Removes this rank's file, if there is one.
  Result<void> remove();

  /// Of a rank's file; empty: there is no folder.
  std::string path_of(int rank) const;

 private:
  std::optional<std::string> folder_;
  int rank_ = 0;
};

/// Options of `with_gathered_tensors` and `with_gathered_states`. All ranks give equal ones, but
/// for times and the folder's path.
struct GatherOptions {
  /// Those that give something, by the group's ranks, each once: the first one gets all, in this
  /// order. The others take part without giving. Empty: all ranks of the group.
  std::vector<int> ranks;
  /// A folder that these ranks see. Empty: through the memory of their host (/dev/shm).
  std::string folder;
  /// Of tensors: another shape or dtype than the first one's is an error.
  bool equal_tensors = true;
  Duration timeout = default_timeout;  ///< of each exchange before the body
  /// How long ranks wait for each other's body; a rank that is lost ends the wait.
  Duration body_timeout{std::chrono::hours(24)};
  /// Why this rank cannot do its part: it calls all the same, and the call is an error on all
  /// ranks (invalid_argument, `detail`: this text). Empty: it can.
  std::string refusal;
};

namespace detail {

/// A scope on this rank: opened together with the others, ended together with them.
class MUSTER_API Gathering {
 public:
  static Result<Gathering> of_tensors(RankGroup& group, const TensorView& tensor,
                                      const GatherOptions& options);
  static Result<Gathering> of_states(RankGroup& group, const std::optional<SharedStateView>& state,
                                     const GatherOptions& options);
  ~Gathering();
  Gathering(Gathering&&) noexcept;
  Gathering& operator=(Gathering&&) = delete;

  Span<const TensorView> tensors() const;
  Span<const std::optional<SharedStateView>> states() const;
  /// Tells the others how this rank's body has ended, and waits for theirs.
  Result<void> end(const TurnOutcome& own);

  class Impl;
  explicit Gathering(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

template <class F, class Gathered>
Result<typename UserWork<F, Gathered>::Value> in_gathering(Result<Gathering> gathering,
                                                           Gathered (Gathering::*gathered)() const,
                                                           F& body) {
  using User = UserWork<F, Gathered>;
  if (!gathering) return std::move(gathering).error();
  User user(body);
  const TurnOutcome own =
      user.run(((*gathering).*gathered)(), encode_nothing<typename User::Value>);
  return user.give(gathering->end(own));
}

}  // namespace detail

// Scopes in which one rank has what others gave. All ranks of the group call them, in the same
// order as other collectives on it. The body runs on all ranks: on the first of `ranks` it gets
// what all of them gave, its own as it is, the others' read-only; on other ranks an empty span.
// What it gets lasts until it returns. It gives a value, a Result or nothing.
//
// returns  what this rank's body gives
// errors   of all, on all ranks and before any body runs: invalid_argument (ranks: whose tensor or
//          rank cannot be; or who shares no memory with the first one), mismatch (ranks: those
//          whose options differ from rank 0's, or whose tensors from the first one's),
//          resource_exhausted (ranks: whose memory or folder is full), permission_denied,
//          unavailable, codec_failure (ranks: whose file was cut or damaged), those of a
//          collective. After the bodies: callback_failed (ranks: whose body has failed; `detail`:
//          its text), rank_lost, timed_out. not_initialized: the group is of no ranks
// threads  one of these at a time on one group, and no other collective of it; not from an inline
//          handler
// cost     three round trips; the bytes are written once and read where they are, or, in a folder,
//          read once. Nothing of them has a name when the bodies run: what a killed process leaves
//          behind before that is removed by the next call on that host

/// Gathers one tensor in host memory from each of `ranks`. Strided ones arrive contiguous.
///
/// body  called with a Span<const TensorView>
/// see   as ModelOpt's get_tensors_parallel
template <class F>
auto with_gathered_tensors(RankGroup& group, const TensorView& tensor, F&& body,
                           const GatherOptions& options = {}) {
  return detail::in_gathering<std::remove_reference_t<F>, Span<const TensorView>>(
      detail::Gathering::of_tensors(group, tensor, options), &detail::Gathering::tensors, body);
}

/// Gathers a state from each of `ranks`, or none: its place then is empty, and the order is kept.
///
/// body  called with a Span<const std::optional<SharedStateView>>
/// see   as ModelOpt's get_configs_parallel
template <class F>
auto with_gathered_states(RankGroup& group, const std::optional<SharedStateView>& state, F&& body,
                          const GatherOptions& options = {}) {
  return detail::in_gathering<std::remove_reference_t<F>,
                              Span<const std::optional<SharedStateView>>>(
      detail::Gathering::of_states(group, state, options), &detail::Gathering::states, body);
}

MUSTER_END_NAMESPACE
