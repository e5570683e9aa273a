#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/turns.h"
#include "runtime/cut_timeout.h"
#include "runtime/rank_group.h"

MUSTER_BEGIN_NAMESPACE

/// Where what a work tells goes.
///
/// threads  any
class Progress::Impl {
 public:
  Impl() = default;
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Never blocks.
  virtual void tell(std::string_view text) = 0;
};

MUSTER_END_NAMESPACE

namespace muster::runtime {

/// Writes the last text to a key of this rank, one request at a time: what is told while one is on
/// its way goes with the next one.
///
/// threads  any; handlers may outlive it
class StoreProgress final : public Progress::Impl,
                            public std::enable_shared_from_this<StoreProgress> {
 public:
  StoreProgress(StatelessProcessGroup& group, std::string key, Duration lifetime)
      : store_(group.store()), key_(std::move(key)), lifetime_(lifetime) {}

  void tell(std::string_view text) override;
  /// Nothing is sent any more, and the key goes.
  void end();

 private:
  void send();

  Store& store_;
  const std::string key_;
  const Duration lifetime_;
  std::mutex mutex_;
  bool is_sending_ = false;
  bool has_more_ = false;
  bool is_over_ = false;
  std::uint64_t count_ = 0;
  std::string text_;
};

inline TurnOptions cut_to_a_year(TurnOptions options) {
  options.silence_max = cut_to_a_year(options.silence_max);
  options.limit = cut_to_a_year(options.limit);
  options.arrival_max = cut_to_a_year(options.arrival_max);
  return options;
}

/// One call of turns.h on one rank: tells others what its work has come to, and waits for theirs.
class Turn {
 public:
  using Clock = std::chrono::steady_clock;

  /// operation  the public call
  Turn(RankGroup::Impl& group, std::string_view operation, const TurnOptions& options);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  int rank() const { return group_.group().rank(); }
  int world_size() const { return group_.group().world_size(); }
  Progress& progress() { return progress_; }

  Result<void> tell(int rank, const detail::TurnOutcome& outcome);
  Result<void> tell_all(const std::vector<int>& ranks, const detail::TurnOutcome& outcome);
  /// Waits until that rank has told. Its progress is passed on as this rank's own, for those who
  /// wait for this one.
  Result<detail::TurnOutcome> outcome_of(int rank);
  /// The same; a work that has failed is an error.
  Result<std::string> value_of(int rank);
  Error failed(const std::vector<int>& ranks, std::string why) const;

 private:
  /// What was heard of another rank's work.
  struct Heard {
    Clock::time_point at;
    std::uint64_t count = 0;
    std::string text;
  };

  std::string key_of(int rank) const;
  void blame(Error& error, int rank) const;
  Result<std::optional<detail::TurnOutcome>> receive(int rank, Duration wait);
  Result<void> listen(int rank, Heard& heard);
  Error silent(int rank, const Heard& heard, std::string why) const;
  Error about(Error error) const;

  RankGroup::Impl& group_;
  const std::string operation_;
  const TurnOptions options_;
  const std::uint64_t number_;
  const Clock::time_point deadline_;
  std::shared_ptr<StoreProgress> told_;
  Progress progress_;
};

}  // namespace muster::runtime
