#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "client.h"
#include "process.h"

namespace muster::sim {

/// Comes when all others are gone: compares every key of a namespace with the model, and removes
/// them all, or leaves them there.
class Sweeper {
 public:
  enum class Then { removes, leaves };
  Sweeper(const Identity& identity, Town& town, Clock clock, Then then);

  void begin();
  bool is_done() const { return is_done_; }
  /// How many keys are left.
  std::size_t listed_count() const { return listed_.size(); }

 private:
  using Use = std::function<void(const std::string& body)>;

  void ask(const wire::RequestBody& body, Use use);
  void read_back();
  void read_queues();
  void pop(const KeyModel::Key& key);
  void list(std::uint64_t cursor);
  void remove();
  void close_if_done();

  Town& town_;
  std::string name_space_;
  Then then_;
  Client client_;
  std::set<std::string> listed_;
  std::size_t calls_pending_ = 0;
  bool is_swept_ = false;  ///< the keys were compared, and removed if they are to be
  bool is_done_ = false;
};

/// A supervisor that drops a namespace which all others have left.
class Dropper {
 public:
  Dropper(const Identity& identity, Town& town, Clock clock);

  /// There must be so many keys in it; without any there is no such namespace.
  void begin(const std::string& name_space, std::size_t keys_count);
  bool is_done() const { return is_done_; }

 private:
  Town& town_;
  Client client_;
  bool is_done_ = false;
};

}  // namespace muster::sim
