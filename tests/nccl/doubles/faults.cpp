#include "nccl/doubles/faults.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "nccl/doubles/exported.h"
#include "nccl/doubles/nccl_control.h"

// A phase asks twice: where its call begins and where its background does. Each asks for the kinds
// that belong there, in the order in which the faults were added.

namespace nccl_double {
namespace {

enum class FaultKind {
  block,
  result,
  hang,
  later,
  stop,
  exit,
  kill,
  delay,
  forever,
  async,
  stop_inside,
  exit_inside,
  kill_inside,
};

constexpr std::array phase_names{"get_unique_id", "init",    "check_in",   "ring",
                                 "connect",       "ready",   "collective", "abort",
                                 "finalize",      "destroy", "red_op"};
constexpr std::array fault_kind_names{
    "block", "result",  "hang",  "later",       "stop",        "exit",       "kill",
    "delay", "forever", "async", "stop_inside", "exit_inside", "kill_inside"};

struct Fault {
  Phase phase;
  FaultKind kind;
  long number = 0;
  int rank = any_rank;
  long skipped = 0;
  long times = -1;  ///< below 0: without end
};

class Faults {
 public:
  Faults() {
    const char* const given = std::getenv("NCCL_DOUBLE_FAULTS");
    std::istringstream list(given == nullptr ? "" : given);
    for (std::string text; std::getline(list, text, ';');) {
      if (!add(text)) std::abort();  // a test that injects nothing would prove nothing
    }
  }

  bool add(const std::string& text);

  void clear() {
    const std::lock_guard lock(mutex_);
    faults_.clear();
    ++generation_;
    cleared_.notify_all();
  }

  /// The faults that come now, of these kinds.
  template <class Wanted>
  std::vector<Fault> take(Phase phase, int rank, Wanted wanted) {
    const std::lock_guard lock(mutex_);
    std::vector<Fault> taken;
    for (Fault& fault : faults_) {
      if (fault.phase != phase || !wanted(fault.kind) || fault.times == 0) continue;
      if (fault.rank != any_rank && fault.rank != rank) continue;
      if (fault.skipped > 0) {
        --fault.skipped;
        continue;
      }
      if (fault.times > 0) --fault.times;
      taken.push_back(fault);
    }
    return taken;
  }

  void block(std::optional<std::chrono::milliseconds> time) {
    std::unique_lock lock(mutex_);
    const auto is_cleared = [this, generation = generation_] { return generation_ != generation; };
    if (time) {
      cleared_.wait_for(lock, *time, [] { return false; });
    } else {
      cleared_.wait(lock, is_cleared);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable cleared_;
  std::vector<Fault> faults_;
  long generation_ = 0;
};

template <class Enumeration, class Names>
std::optional<Enumeration> find(const Names& names, const std::string& name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Enumeration>(i);
  }
  return std::nullopt;
}

bool Faults::add(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  std::size_t end = text.find_first_of("=@+*", colon);
  const auto phase = find<Phase>(phase_names, text.substr(0, colon));
  const std::size_t kind_size = end == std::string::npos ? end : end - colon - 1;
  const auto kind = find<FaultKind>(fault_kind_names, text.substr(colon + 1, kind_size));
  if (!phase || !kind) return false;
  Fault fault{*phase, *kind};
  while (end != std::string::npos) {
    const long number = std::atol(text.c_str() + end + 1);
    switch (text[end]) {
      case '=': fault.number = number; break;
      case '@': fault.rank = static_cast<int>(number); break;
      case '+': fault.skipped = number; break;
      default: fault.times = number; break;
    }
    end = text.find_first_of("=@+*", end + 1);
  }
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
  return true;
}

Faults& faults() {
  static auto* const one = new Faults;  // threads may outlive the statics
  return *one;
}

bool is_of_background(Phase phase) {
  return phase == Phase::check_in || phase == Phase::ring || phase == Phase::connect ||
         phase == Phase::ready;
}

[[noreturn]] void die_by_kill() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

}  // namespace

CallFault fault_of_call(Phase phase, int rank) {
  CallFault wanted;
  const auto belongs = [](FaultKind kind) { return kind <= FaultKind::kill; };
  for (const Fault& fault : faults().take(phase, rank, belongs)) {
    switch (fault.kind) {
      case FaultKind::block: faults().block(std::chrono::milliseconds(fault.number)); break;
      case FaultKind::hang: faults().block(std::nullopt); break;
      case FaultKind::result: wanted.result = static_cast<int>(fault.number); break;
      case FaultKind::later: wanted.later = std::chrono::milliseconds(fault.number); break;
      case FaultKind::stop: ::raise(SIGSTOP); break;
      case FaultKind::exit: ::_exit(static_cast<int>(fault.number)); break;
      default: die_by_kill();
    }
  }
  return wanted;
}

InsideFault fault_inside(Phase phase, int rank, const Cancel& cancel) {
  InsideFault wanted;
  const bool all = is_of_background(phase);
  const auto belongs = [&](FaultKind kind) { return all || kind > FaultKind::kill; };
  for (const Fault& fault : faults().take(phase, rank, belongs)) {
    switch (fault.kind) {
      case FaultKind::block: faults().block(std::chrono::milliseconds(fault.number)); break;
      case FaultKind::hang: faults().block(std::nullopt); break;
      case FaultKind::result:
      case FaultKind::async: wanted.result = static_cast<int>(fault.number); break;
      case FaultKind::later:
      case FaultKind::delay: cancel.wait_for(std::chrono::milliseconds(fault.number)); break;
      case FaultKind::forever: wanted.is_forever = true; break;
      case FaultKind::stop:
      case FaultKind::stop_inside: ::raise(SIGSTOP); break;
      case FaultKind::exit:
      case FaultKind::exit_inside: ::_exit(static_cast<int>(fault.number)); break;
      case FaultKind::kill:
      case FaultKind::kill_inside: die_by_kill();
    }
  }
  return wanted;
}

}  // namespace nccl_double

DOUBLE_EXPORT int nccl_double_fault(const char* text) {
  return nccl_double::faults().add(text) ? 0 : -1;
}

DOUBLE_EXPORT void nccl_double_clear_faults() { nccl_double::faults().clear(); }
