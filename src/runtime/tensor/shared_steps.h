#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "muster/process_group.h"
#include "runtime/shared/segment.h"
#include "runtime/tensor/steps.h"

namespace muster::runtime {

/// Steps through memory that all ranks of a group have mapped.
///
/// It ends for all ranks when one gives up, or loses another: see `is_over`.
class SharedSteps : public Steps {
 public:
  struct Made;

  /// Tries to share memory. Collective.
  ///
  /// returns  without steps and with the reason, the same on all ranks, if they cannot
  /// errors   those of a collective
  static Result<Made> make(StatelessProcessGroup& group, Clock::time_point deadline);

  std::size_t part_bytes_max() const override { return part_bytes_; }
  bool is_shared() const override { return true; }
  char* own_part(std::size_t bytes) override;
  /// errors  timed_out (ranks: missing), and what has ended the group, or has interrupted it
  Result<void> exchange(std::size_t bytes, Clock::time_point deadline) override;
  std::string_view part(int rank) const override;

  /// It has ended, and every exchange gives an error; the group may go on.
  bool is_over() const;
  /// Why others have ended it in a step to which this rank had yet to come: the call that this rank
  /// makes now is the one that has failed on them. None: there is no such end. Not of an
  /// interruption, which counts as a call of nobody.
  std::optional<Error> end_to_come();

 private:
  struct Memory;
  struct Cell;
  /// Told by the thread that watches the group.
  struct Notice {
    std::mutex mutex;
    std::optional<Error> error;
    std::atomic<bool> is_there{false};
  };

  SharedSteps(StatelessProcessGroup& group, SharedSegment segment, std::size_t part_bytes);

  static std::size_t bytes_of(int world_size, std::size_t part_bytes);
  Memory& memory() const;
  Cell& cell(int rank) const;
  char* part_of(int rank, std::uint32_t step) const;
  bool arrive(std::uint32_t step);
  Result<void> wait_for(std::uint32_t step, Clock::time_point deadline);
  /// Ends it for all ranks, unless the step has been completed.
  Result<void> give_up(std::uint32_t step, Error why);
  Error ended_by(int rank, std::uint32_t step);
  Error timed_out(std::uint32_t step, int decided_by) const;
  std::optional<Error> noticed() const;

  StatelessProcessGroup& group_;
  SharedSegment segment_;
  const std::size_t part_bytes_;
  const int spins_;
  std::uint32_t step_ = 0;   ///< the last one that was completed
  bool has_failed_ = false;  ///< an exchange of this rank
  std::shared_ptr<Notice> notice_;
  std::optional<GroupWatch> watch_;
};

struct SharedSteps::Made {
  std::unique_ptr<SharedSteps> steps;
  std::string why_not;
};

}  // namespace muster::runtime
