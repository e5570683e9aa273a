#pragma once

#include <cstdint>
#include <string>

#include "process.h"

namespace muster::sim {

/// What somebody of another tenant does in the workers' namespace: what he has a right to, and what
/// he has not. What the server answers the witness judges; here is looked at what it tells him.
class StrangerWork {
 public:
  explicit StrangerWork(Process& process) : process_(process) {}
  void begin() { plan(); }

 private:
  void plan();
  void work();
  void use_keys();
  void wait_for_a_key();
  void look_at_sessions();
  void look_at_waiters();
  void look_at_groups();
  void look_at_status();
  void inspect_a_group();
  void declare_dead();
  void drop();
  void join_own();

  template <class Reply, class Use>
  void ask(const std::string& what, const wire::RequestBody& body, Duration timeout, Use use);
  void check_process(const ProcessInfo& process);
  Town& town() { return process_.town(); }
  void problem(const std::string& what);

  Process& process_;
};

}  // namespace muster::sim
