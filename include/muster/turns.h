#pragma once

// Work that some ranks of a group do before others, or instead of them. In the library
// muster-runtime (CMake: Muster::runtime).

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/detail/object_calls.h"
#include "muster/result.h"
#include "muster/runtime.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// How long ranks wait for one that works. A death ends the wait within seconds; work that goes on
/// may prolong it (see Progress). All are above zero.
struct TurnOptions {
  /// The waiting ranks give up after this long without progress.
  Duration silence_max{std::chrono::hours(1)};
  /// The waiting ranks give up after this long, whatever progress they have seen.
  Duration limit{std::chrono::hours(24)};
  /// Signal files only: how long to wait for a rank that has not come yet. No server knows there
  /// whether it lives.
  Duration arrival_max{std::chrono::seconds(30)};
};

/// By which work tells those who wait for it that it goes on. It is lent to the work.
///
/// threads  any
class MUSTER_API Progress {
 public:
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Those who wait do so for another `TurnOptions::silence_max`. If they give up later, their
  /// error has the last text and its age. Never blocks; may be called often: most calls send
  /// nothing.
  ///
  /// text  what is done, for people, such as "shard 3 of 12"; the first 256 bytes count
  void operator()(std::string_view text);

  class Impl;
  explicit Progress(Impl& impl) : impl_(impl) {}

 private:
  Impl& impl_;
};

namespace detail {

/// What a rank's work has come to: an encoded value, or why it has failed.
struct TurnOutcome {
  std::string bytes;
  std::optional<std::string> failure;
  std::vector<int> failed_ranks = {};  ///< of several works; empty: that of the rank that tells
};
using Work = std::function<TurnOutcome(Progress& progress)>;

/// returns  on other ranks than 0: the encoded value
MUSTER_API Result<std::string> run_on_rank_zero(RankGroup& group, const Work& work,
                                                const TurnOptions& options);
MUSTER_API Result<void> run_n_at_a_time(RankGroup& group, int count, const Work& work,
                                        const TurnOptions& options);
/// What ranks share of which one works first.
enum class Shared : std::uint8_t { node, file_system };
MUSTER_API Result<void> run_leader_first(RankGroup& group, Shared shared, const Work& work,
                                         const TurnOptions& options);

/// What a work gives: its value, also if that is in a Result.
template <class T>
struct WorkValue {
  using type = T;
};
template <class T>
struct WorkValue<Result<T>> {
  using type = T;
};

/// A work of the user's, as the functions above run it: what it gives and what it throws are kept.
template <class F, class Argument = Progress&>
class UserWork {
 public:
  using Given = std::invoke_result_t<F&, Argument&>;
  using Value = typename WorkValue<Given>::type;

  explicit UserWork(F& work) : work_(work) {}

  /// encode  makes bytes of a value, a Result
  template <class Encode>
  TurnOutcome run(Argument argument, const Encode& encode) {
    MUSTER_TRY {
      if constexpr (std::is_void_v<Given>) {
        work_(argument);
        result_.emplace();
      } else {
        result_.emplace(work_(argument));
      }
    }
    MUSTER_CATCH_ALL {
      thrown_ = std::current_exception();
      return {{}, current_exception_text(), {}};
    }
    if (!result_->has_value()) return {{}, result_->error().message(), {}};
    Result<std::string> bytes = encode(*result_);
    if (!bytes) return {{}, bytes.error().message(), {}};
    return {*std::move(bytes), {}, {}};
  }

  bool has_run() const { return result_.has_value() || thrown_ != nullptr; }

  /// What it has given, or else `otherwise`; throws what it has thrown.
  Result<Value> give(Result<void> otherwise) {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    if (result_ && (!result_->has_value() || otherwise)) return *std::move(result_);
    return std::move(otherwise).error();
  }

 private:
  F& work_;
  std::optional<Result<Value>> result_;
  std::exception_ptr thrown_;
};

template <class Value>
Result<std::string> encode_nothing(const Result<Value>&) {
  return std::string();
}

template <class F>
Result<typename UserWork<F>::Value> leader_first(RankGroup& group, Shared shared, F& work,
                                                 const TurnOptions& options) {
  UserWork<F> user(work);
  auto done = run_leader_first(
      group, shared,
      [&](Progress& progress) {
        return user.run(progress, encode_nothing<typename UserWork<F>::Value>);
      },
      options);
  return user.give(std::move(done));
}

}  // namespace detail

// Each of these takes a work that is called with a `Progress&`, and that gives a value, a Result or
// nothing. All ranks of the group call it, in the same order as other calls on this RankGroup. What
// the work throws is caught, the others are told its text, and it is thrown again on its own rank.
//
// errors   of all: not_initialized (the RankGroup is of no ranks); what ends a receive of the group
//          (rank_lost, rank_left, interrupted, ...); timed_out (ranks: who has told nothing;
//          `detail`: its last progress, and the age of that); callback_failed (ranks: whose work
//          has failed; `detail`: its text), on ranks that depend on that work
// threads  one of these at a time on one RankGroup; not from an inline handler
// cost     one object from each rank that works to each that waits for it; who waits asks for the
//          progress of whom it waits for every third of `silence_max`, at least every 10 s

/// Runs the work on the group's rank 0 alone, and gives all ranks what it gives.
///
/// see  as ModelOpt's master_only
template <class Codec = DefaultCodec, class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> on_rank_zero(
    RankGroup& group, F&& work, const TurnOptions& options = {}) {
  using User = detail::UserWork<std::remove_reference_t<F>>;
  using Value = typename User::Value;
  User user(work);
  const auto encode = [](const Result<Value>& result) -> Result<std::string> {
    if constexpr (std::is_void_v<Value>) {
      return detail::encode_nothing(result);
    } else {
      return detail::ObjectCodec<Codec>::encode(*result);
    }
  };
  auto told = detail::run_on_rank_zero(
      group, [&](Progress& progress) { return user.run(progress, encode); }, options);
  if (user.has_run())
    return user.give(told ? Result<void>() : Result<void>(std::move(told).error()));
  if (!told) return std::move(told).error();
  if constexpr (std::is_void_v<Value>) {
    return {};
  } else {
    return detail::ObjectCodec<Codec>::template decode<Value>(*told);
  }
}

/// Runs the work on all ranks, but on no more than `count` at a time. Ends when it has ended on all
/// ranks, with callback_failed if it has failed on one; the others have still had their turns.
///
/// count    0: as many as the group's ranks have nodes
/// returns  what this rank's work gives
/// errors   also invalid_argument (the count)
/// see      as OLMo-core's do_n_at_a_time
template <class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> n_at_a_time(
    RankGroup& group, int count, F&& work, const TurnOptions& options = {}) {
  using User = detail::UserWork<std::remove_reference_t<F>>;
  User user(work);
  auto done = detail::run_n_at_a_time(
      group, count,
      [&](Progress& progress) {
        return user.run(progress, detail::encode_nothing<typename User::Value>);
      },
      options);
  return user.give(std::move(done));
}

/// Runs the work on one rank of each node, the one with the lowest local rank in the group; then on
/// the other ranks of that node. For what the first one leaves on the node for the others, such as
/// a download. If it fails there, the others do not begin.
///
/// returns  what this rank's work gives
/// see      as composer's run_local_rank_zero_first
template <class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> local_rank_zero_first(
    RankGroup& group, F&& work, const TurnOptions& options = {}) {
  return detail::leader_first(group, detail::Shared::node, work, options);
}

/// The same for ranks that share a file system: those of the whole job if OLMO_SHARED_FS or
/// MUSTER_SHARED_FS is 1 on all ranks, else those of a node.
///
/// see  JobNumber::fs_local_rank
template <class F>
Result<typename detail::UserWork<std::remove_reference_t<F>>::Value> fs_local_rank_zero_first(
    RankGroup& group, F&& work, const TurnOptions& options = {}) {
  return detail::leader_first(group, detail::Shared::file_system, work, options);
}

MUSTER_END_NAMESPACE
