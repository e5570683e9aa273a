#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/forked.h"
#include "communicator/arguments.h"
#include "communicator/gate.h"
#include "muster/communicator.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// Where a communicator belongs.
struct Place {
  explicit Place(const StatelessProcessGroup& of);

  std::string group;
  std::uint64_t epoch = 0;
  std::string where;  ///< the server's address
  int rank = 0;
  int world_size = 0;
  std::vector<ProcessId> processes;  ///< by rank
};

/// A communicator as far as it is the same for all kinds: its place, the watch over the ranks of
/// its group, and the one reason why it is over.
///
/// threads  any
class Life : public std::enable_shared_from_this<Life> {
 public:
  using Clock = std::chrono::steady_clock;
  using Told = std::function<void(const Error& error)>;

  Life(Place place, OnLoss on_loss, Told on_over);

  const Place& place() const { return place_; }
  const std::shared_ptr<Gate>& gate() const { return gate_; }
  /// Then of all that is here only `place` and `about` may be called.
  bool is_forked() const { return owner_.is_forked(); }

  /// From now on the loss of a rank ends it (`end`, which is to call `close`), or its host is told.
  void watch(StatelessProcessGroup& group, Told end);
  /// When it returns, `end` does not run any more.
  void unwatch();
  /// All ranks have it: from now on its host hears of it.
  ///
  /// returns  why it is over already, if it is: then its host hears nothing
  std::optional<Error> commit(MakingTimes making);
  MakingTimes making() const { return making_; }

  /// Ends it. The first reason counts.
  ///
  /// returns  whether this was the first; then `tell_host`, when what hangs has been let go
  bool close(Error why);
  /// Lets its host hear why it is over. What its handler throws goes nowhere.
  void tell_host() const;

  /// From now on it is nothing that a rank leaves: those that are done close their group, too.
  void begin_closing() { is_closing_ = true; }

  /// Waits until it is over or a loss was heard that may be why a call fails, at most for `limit`:
  /// what moves data may find out before the store does that a rank is gone, but not why.
  ///
  /// since    when the call began: what was heard before it counts only of the peer
  /// peer     the rank that the call waited for; -1: it is not known
  /// returns  why it is over, else the peer's loss, else the last one; none: nothing came
  std::optional<Error> await_cause(Duration limit,
                                   Clock::time_point since = Clock::time_point::min(),
                                   int peer = -1);

  /// Has another group watched, that the same processes have formed. Collective.
  ///
  /// errors  mismatch (ranks: another process than before), those of a collective
  Result<void> attach(StatelessProcessGroup& group, std::uint32_t codec, Duration timeout,
                      Told end);

  /// What every error of a call says.
  Error about(std::string_view operation, Error error, Clock::time_point began) const;

 private:
  struct Loss {
    Error error;
    Clock::time_point heard;
  };

  void hear(const Error& error, const Told& end);
  /// Under `cause_mutex_`; null: there is none.
  const Loss* find_loss(Clock::time_point since, int peer) const;
  void say(const Error& why) const;

  const base::Owner owner_;
  const Place place_;
  const OnLoss on_loss_;
  const Told on_over_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::mutex commit_mutex_;
  MakingTimes making_;
  std::atomic<bool> is_committed_{false};
  std::atomic<bool> is_closing_{false};
  std::mutex watch_mutex_;
  GroupWatch watch_;
  std::mutex cause_mutex_;
  std::condition_variable cause_came_;
  std::vector<Loss> losses_;  ///< each of another rank, as they were heard
};

/// A communicator's own part of its life: what it says of itself, and that a loss ends it.
///
/// Impl  the communicator, derived from this, with `end(Error)`
template <class Impl>
class HasLife : public std::enable_shared_from_this<Impl> {
 public:
  const Place& place() const { return life_->place(); }
  Gate& gate() const { return *life_->gate(); }
  /// `forked`, if this is a forked child of the process that made it: then nothing else is called,
  /// and it is never destroyed (`keep_forever`).
  std::optional<Error> refusal(std::string_view operation) const {
    if (!life_->is_forked()) return std::nullopt;
    return about(operation, forked(), Life::Clock::now());
  }
  void watch(StatelessProcessGroup& group) { life_->watch(group, ends_this()); }
  void unwatch() { life_->unwatch(); }
  std::optional<Error> commit(MakingTimes making) { return life_->commit(making); }
  MakingTimes making() const { return life_->making(); }
  Result<void> attach(StatelessProcessGroup& group, std::uint32_t codec, Duration timeout) {
    return life_->attach(group, codec, timeout, ends_this());
  }
  Error about(std::string_view operation, Error error, Life::Clock::time_point began) const {
    return life_->about(operation, std::move(error), began);
  }

 protected:
  HasLife(Place place, OnLoss on_loss, Life::Told on_over)
      : life_(std::make_shared<Life>(std::move(place), on_loss, std::move(on_over))) {}
  ~HasLife() = default;

  Life& life() const { return *life_; }

 private:
  Life::Told ends_this() {
    return [weak = this->weak_from_this()](const Error& error) {
      if (const auto self = weak.lock()) self->end(error);
    };
  }

  const std::shared_ptr<Life> life_;
};

/// Why every call on it is refused, if it is: moved from, or inherited by a forked child.
template <class Impl>
std::optional<Error> refusal_of(const std::shared_ptr<Impl>& impl, std::string_view operation) {
  return impl ? impl->refusal(operation) : moved_from(operation);
}

}  // namespace muster::communicator
