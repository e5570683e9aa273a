#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "guest_work.h"
#include "oracle.h"
#include "plan.h"
#include "process.h"
#include "subject.h"
#include "sweeper.h"
#include "trace.h"
#include "weather.h"
#include "witness.h"

namespace muster::sim {

/// One story: a server and the processes of an application, from their start to their end.
class World {
 public:
  World(std::uint64_t seed, bool is_printed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome run();

 private:
  wire::Role role_of(std::uint32_t slot) const;
  Line line_of(std::uint32_t slot) const;
  void spawn(std::uint32_t slot);
  void pass(Duration duration) { scheduler_.run_until(scheduler_.now() + duration); }
  void look_again();
  void look_for_members_without_handles();
  Process* process_of(const ProcessInfo& info, std::size_t name_space);
  void check_quiet();
  void end_all();
  void sweep();
  void drop(const std::string& name_space, std::size_t keys_count);
  Identity come(std::string name_space, wire::Role role);
  void check_nothing_is_left();
  Clock clock();

  Plan plan_;
  Trace trace_;
  Scheduler scheduler_;
  Random random_;
  Network network_;
  Registry registry_;
  Server server_;
  Oracle oracle_;
  Witness witness_;
  GuestModel guest_model_;
  Town town_;
  std::deque<Process> processes_;
  std::deque<GuestWork> guests_;
  Weather weather_;
  std::deque<Sweeper> sweepers_;
  std::deque<Dropper> droppers_;
  /// Members whose processes have no handle, and since when that is known.
  using Unheld = std::tuple<std::uint64_t, std::string, std::uint64_t>;  ///< client, group, joins
  std::map<Unheld, Instant> unheld_;
};

}  // namespace muster::sim
