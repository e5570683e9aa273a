#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "client/handlers.h"
#include "client/link/connections.h"
#include "client/link/link_state.h"
#include "client/link/world.h"
#include "muster/store.h"

namespace muster::client {

/// The I/O thread's part of a link: tells the protocol what the network and the clock do, and
/// carries out its effects, in turns. driver_effects.cpp has the effects, driver.cpp the turns.
///
/// Life cycle: created -> the first turn starts it -> finished, when closing has been carried out.
class Driver {
 public:
  Driver(const StoreOptions& options, World& world, const Handlers& handlers, LinkState& state);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Who keeps this alive; before anything else.
  void belong_to(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  /// Any thread: somebody has left something to do. One turn follows, however often it is called.
  void wake() noexcept;

  /// On the I/O thread.
  void turn();

 private:
  /// Posted to the I/O thread, which holds the link until the turn has begun.
  class TurnTask final : public net::Task {
   public:
    explicit TurnTask(Driver& driver) : driver_(driver) {}
    void hold(std::shared_ptr<void> owner) { held_ = std::move(owner); }
    void run() override {
      const auto held = std::move(held_);
      driver_.is_woken_ = false;  // from here on it may be posted again
      driver_.turn();
    }
    void drop() noexcept override { const auto held = std::move(held_); }

   private:
    Driver& driver_;
    std::shared_ptr<void> held_;
  };

  void start();
  void apply(const protocol::Input& input);
  void pump();
  void settle_establishments();
  void await_next();
  void time_has_come();
  void finish();
  void fail(std::string_view why);

  void execute(protocol::Connect& effect);
  void execute(protocol::Disconnect& effect);
  void execute(protocol::Transmit& effect);
  void execute(protocol::Complete& effect);
  void execute(protocol::Notify& effect);
  void execute(protocol::Established& effect);
  void execute(protocol::Log& effect);
  void connected(World::Connected outcome);

  const StoreOptions& options_;
  World& world_;
  const Handlers& handlers_;
  LinkState& state_;
  std::weak_ptr<void> owner_;

  TurnTask turn_task_{*this};
  std::atomic<bool> is_woken_{false};

  Connections connections_;
  bool is_in_turn_ = false;  ///< and will look for effects again
  bool is_started_ = false;
  bool polls_busily_ = false;
  std::uint64_t ring_number_ = 0;
  std::uint64_t failure_number_ = 0;
  std::vector<protocol::Effect> spare_effects_;
};

}  // namespace muster::client
