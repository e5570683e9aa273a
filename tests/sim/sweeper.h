#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "client.h"
#include "process.h"

namespace muster::sim {

/// Comes when all others are gone: compares every key of a namespace with the model, and removes
/// them all.
class Sweeper {
 public:
  Sweeper(const Identity& identity, Town& town, Clock clock);

  void begin();
  bool is_done() const { return is_done_; }

 private:
  using Use = std::function<void(const std::string& body)>;

  void ask(const wire::RequestBody& body, Use use);
  void read_back();
  void list(std::uint64_t cursor);
  void remove();

  Town& town_;
  std::string name_space_;
  Client client_;
  std::set<std::string> listed_;
  bool is_done_ = false;
};

}  // namespace muster::sim
