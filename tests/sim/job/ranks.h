#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "land.h"
#include "wire.h"

namespace muster::sim::job {

/// The ranks of one node, and the guardian that is their parent: tools/musterrun/guardian.cpp.
class Ranks {
 public:
  struct Report {
    enum class Kind : std::uint8_t { not_started, ended, gone };
    Kind kind = Kind::ended;
    int local_rank = 0;
    int exit_code = 0;
    bool is_stuck = false;  ///< processes are left that cannot be killed
  };
  /// report  hears when the launcher runs
  Ranks(Land& land, std::size_t who, std::function<void(const Report&)> report);

  // Orders of the launcher.
  void start(int attempt, int local_rank);
  void forward(int signal);
  void end(Duration grace, bool were_told);

  /// The guardian ends all.
  void lose_launcher();
  /// The host is gone.
  void vanish();
  /// One of them is killed; nothing if there is none.
  void kill_one();
  /// Those that hang end.
  void release();

 private:
  struct Rank {
    int attempt = 0;
    bool hangs = false;
    bool disobeys = false;
    bool is_stuck = false;
    int exit_code = 0;
    std::uint64_t number = 0;  ///< of all that were started
  };
  void begin(int attempt, int local_rank);
  void begin_to_end(Duration grace, bool were_told);
  void end_after(int local_rank, Duration delay, int exit_code);
  void end_one(int local_rank, int exit_code);
  void tell_to_end(int local_rank, int signal);
  void kill_all();
  void look_at_left();
  void tell_gone(bool is_stuck);
  void report(const Report& report);

  Land& land_;
  const std::size_t who_;
  std::function<void(const Report&)> report_;
  Wire wire_;
  std::map<int, Rank> ranks_;
  std::uint64_t started_ = 0;
  bool is_ending_ = false;
  std::uint64_t endings_ = 0;  ///< so many times they were ended
  Instant kill_at_{};
  bool is_alone_ = false;
  bool has_vanished_ = false;
};

}  // namespace muster::sim::job
