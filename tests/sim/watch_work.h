#pragma once

#include <cstdint>
#include <string>

#include "process.h"

namespace muster::sim {

/// What an observer does: it looks at the server as an operator would, and may take no part.
class WatchWork {
 public:
  explicit WatchWork(Process& process) : process_(process) {}
  void begin() { plan(); }

 private:
  void plan();
  void work();
  void look_at_status();
  void look_at_sessions();
  void look_at_group();
  void look_at_waiters();
  static std::uint64_t number_of(const wire::StatusReply& status, std::string_view name);
  void look_at_history();
  void look_at_name_spaces();
  void try_to_join();
  void try_to_declare_dead();
  void try_to_drop();

  template <class Reply, class Use>
  void look(const std::string& what, const wire::RequestBody& body, Use use);
  Town& town() { return process_.town(); }
  void problem(const std::string& what);

  Process& process_;
};

}  // namespace muster::sim
