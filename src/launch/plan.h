#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the launchers of a job tell each other: who is there, which ranks an attempt has, how it has
// ended, and how the job has.

namespace muster::launch {

/// A launcher that takes part in a job. Each runs the ranks of one node.
struct Node {
  std::uint64_t number = 0;  ///< in the order of arrival, from 1; no other one ever has it
  std::string host;
  std::int64_t pid = 0;
  int process_count = 1;
  std::string role;                ///< of its ranks
  std::optional<int> wanted_rank;  ///< the node rank that a person has told it
  std::string terms;               ///< what it was told that holds for all nodes, for people
};

/// One attempt to run the job: the same ranks of the same nodes from its beginning to its end.
struct Plan {
  int attempt = 0;          ///< from 0
  int restarts_used = 0;    ///< of those that the job may use
  std::vector<Node> nodes;  ///< in the order of node ranks

  int world_size() const;
  int base_rank_of(int node_rank) const;
  /// Among the ranks that have the role of that node, its first one.
  int base_role_rank_of(int node_rank) const;
  /// How many ranks have the role of that node.
  int role_world_size_of(int node_rank) const;
  /// The node rank of the launcher with that number; none: it does not take part.
  std::optional<int> rank_of(std::uint64_t number) const;

 private:
  /// Ranks of the first `count` nodes that have that role.
  int ranks_with(const std::string& role, std::size_t count) const;
};

/// How an attempt has ended.
struct Verdict {
  enum class Kind : std::uint8_t {
    succeeded = 0,
    rank_failed = 1,
    nodes_lost = 2,  ///< they are gone
    node_left = 3,   ///< a signal told it to
    scaled_up = 4,   ///< a node has come, for a larger attempt
  };
  Kind kind = Kind::succeeded;
  int exit_code = 0;
  std::string text;                  ///< for people: who, where and why
  std::vector<std::uint64_t> nodes;  ///< that are lost or have left, by their numbers
  bool is_final = false;             ///< another attempt would end in the same way
};

/// How the job has ended.
struct Ending {
  int exit_code = 0;
  std::string text;  ///< empty: it has succeeded
};

// As bytes, for a store.
std::string encode(const Node& node);
std::string encode(const Plan& plan);
std::string encode(const Verdict& verdict);
std::string encode(const Ending& ending);
// nothing: these are not such bytes
std::optional<Node> decode_node(std::string_view bytes);
std::optional<Plan> decode_plan(std::string_view bytes);
std::optional<Verdict> decode_verdict(std::string_view bytes);
std::optional<Ending> decode_ending(std::string_view bytes);

/// "1 (host b, pid 7)".
std::string text_of(const Node& node, int node_rank);

}  // namespace muster::launch
