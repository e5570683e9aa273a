#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/job_events.h"

namespace muster::launch {

/// The launchers that are there, and for how long more of them are waited for.
class Roster {
 public:
  explicit Roster(Instant now) : changed_(now), waits_since_(now), told_(now) {}

  /// Nobody is known, until they are seen anew.
  void begin_to_wait(Instant now);
  /// Those that have the terms of the first one.
  void see(std::vector<Node> nodes, Instant now);

  /// The one that came first, if it was told otherwise than this launcher, and is there for longer
  /// than a dead one would be; null: it was not, or this one is not seen itself.
  const Node* contradicting(const std::vector<Node>& seen, std::uint64_t own_number,
                            const JobOptions& options, Instant now);

  /// In the order of arrival.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Those that are not in the list.
  std::vector<Node> without(const std::vector<std::uint64_t>& numbers) const;
  /// Of the nodes of a plan, the ranks of those that are not there.
  std::vector<int> missing_of(const Plan& plan) const;
  /// Whether that one came first of those that are there.
  bool is_first(std::uint64_t number) const {
    return !nodes_.empty() && nodes_.front().number == number;
  }
  Duration since_change(Instant now) const { return now - changed_; }
  Duration waited(Instant now) const { return now - waits_since_; }
  /// Who is there and who is missing, every ten seconds.
  std::optional<std::string> progress(const JobOptions& options, Instant now);

 private:
  std::vector<Node> nodes_;
  Instant changed_;
  Instant waits_since_;
  Instant told_;
  Instant contradicted_since_ = base::far_future;
};

/// "a (pid 5), b (pid 7)"; "nobody".
std::string list_of(const std::vector<Node>& nodes);

}  // namespace muster::launch
