#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "base/fifo.h"
#include "base/spare_nodes.h"

namespace muster::client::protocol {

/// What the server has yet to be told of replies: which were received and used (acknowledge), which
/// are no longer wanted (abandon). Each is told again after a resume until something proves that it
/// arrived: the answer to a frame that was sent with it or after it on the same connection.
///
/// Frames are known by their serial, a count of all frames. Cost: O(1) per id, amortized, and no
/// memory in steady state.
class Receipts {
 public:
  void acknowledge(std::uint64_t id);
  void abandon(std::uint64_t id);

  /// The reply was received, and what became of it is told later, by one of the next two.
  void hold(std::uint64_t id);
  std::size_t held_count() const { return held_count_; }
  void acknowledge_held(std::uint64_t id);
  void abandon_held(std::uint64_t id);

  bool has_acknowledgements() const { return !to_acknowledge_.empty(); }
  bool has_abandons() const { return !to_abandon_.empty(); }

  /// The ids for the frame `serial`, as many as one may carry; valid until the next are taken.
  const std::vector<std::uint64_t>& take_acknowledgements(std::uint64_t serial);
  const std::vector<std::uint64_t>& take_abandons(std::uint64_t serial);

  /// Everything sent in frames up to `serial` has arrived.
  void confirm(std::uint64_t serial);

  void connection_lost();
  void clear();

  /// Whether this id is held, waiting to be told, or to be proven.
  bool has(std::uint64_t id) const { return ids_.count(id) != 0; }

 private:
  using Ids = base::Fifo<std::uint64_t>;
  using IdSet = std::unordered_set<std::uint64_t>;
  struct Sent {
    std::uint64_t serial = 0;
    std::uint64_t id = 0;
    bool abandons = false;
  };

  bool insert(std::uint64_t id);
  const std::vector<std::uint64_t>& take(Ids& ids, std::uint64_t serial, bool abandons);

  Ids to_acknowledge_;
  Ids to_abandon_;
  base::Fifo<Sent> unproven_;  // serials ascend
  IdSet ids_;
  std::size_t held_count_ = 0;  ///< of them
  base::SpareNodes<IdSet> spare_ids_;
  std::vector<std::uint64_t> taken_;
};

}  // namespace muster::client::protocol
