#include "launch/placement.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "base/failure.h"

// First the size of the world, which says whether there are several nodes. Then of several nodes
// the place of this one, of which one half follows from the other where all nodes are alike.

namespace muster::launch {

namespace {

std::string shown(std::string_view name, int value) {
  return std::string(name) + "(" + std::to_string(value) + ")";
}

class Placing {
 public:
  explicit Placing(const LaunchOptions& options) : options_(options) {}

  Result<Placement> run() {
    place_.process_count = options_.placement.process_count;
    if (place_.process_count < 1) return error("nproc must be 1 or greater", {"nproc"});
    if (auto fits = find_world_size(); !fits) return std::move(fits).error();
    place_.is_multi_node = place_.world_size > place_.process_count;
    auto fits = place_.is_multi_node ? place_among_nodes() : place_alone();
    if (!fits) return std::move(fits).error();
    return std::move(place_);
  }

 private:
  Result<void> find_world_size() {
    const int nproc = place_.process_count;
    const NodeRange nodes = options_.placement.nodes;
    if (nodes.min != nodes.max) {
      return error("nnodes(" + std::to_string(nodes.min) + ":" + std::to_string(nodes.max) +
                       ") leaves the number of nodes open, which takes a --rendezvous where they "
                       "meet",
                   {"nnodes"});
    }
    const std::int64_t product = std::int64_t{nodes.max} * nproc;
    if (!options_.placement.world_size && product > std::numeric_limits<int>::max())
      return error(shown("nnodes", nodes.max) + " times " + shown("nproc", nproc) + " is too many",
                   {"nnodes", "nproc"});
    place_.world_size = options_.placement.world_size.value_or(static_cast<int>(product));
    if (place_.world_size < nproc) {
      return error(
          shown("world_size", place_.world_size) + " cannot be less than " + shown("nproc", nproc),
          {"world-size", "nproc"});
    }
    if (!says_nodes()) return {};
    // Each other node has a process at least, and a single node has all.
    const bool has_room = place_.world_size - nproc >= nodes.max - 1;
    const bool is_whole = nodes.max > 1 || place_.world_size == nproc;
    if (has_room && is_whole) return {};
    return error(shown("world_size", place_.world_size) + " does not fit " +
                     shown("nnodes", nodes.max) + " with " + shown("nproc", nproc) +
                     " on this node",
                 {"world-size", "nnodes", "nproc"});
  }

  Result<void> place_alone() {
    for (const auto& [name, option, value] :
         {Numbered{"base_rank", "base-rank", options_.placement.base_rank},
          Numbered{"node_rank", "node-rank", options_.placement.node_rank}}) {
      if (value.value_or(0) == 0) continue;
      return error(shown(name, *value) + " must be 0 in a single-node environment: " +
                       shown("nproc", place_.process_count) + " is the whole " +
                       shown("world_size", place_.world_size),
                   {option, "world-size", "nproc"});
    }
    if (options_.master.addr) place_.master_addr = *options_.master.addr;
    place_.master_port = options_.master.port;
    if (options_.master.inherited_addr && !options_.master.addr) warn_of("MASTER_ADDR");
    if (options_.master.inherited_port && !options_.master.port) warn_of("MASTER_PORT");
    return {};
  }

  Result<void> place_among_nodes() {
    if (!options_.placement.node_rank && !options_.placement.base_rank) {
      return error("in a multi-node environment (" + sizes() +
                       "), node_rank or base_rank is required: give --node_rank or --base_rank, or "
                       "a --rendezvous where the nodes meet",
                   {"world-size", "nproc"});
    }
    const int nproc = place_.process_count;
    const bool are_alike = place_.world_size % nproc == 0;
    if (!options_.placement.base_rank) {
      if (!are_alike) return unlike("base_rank", "node_rank", *options_.placement.node_rank);
      const std::int64_t base = std::int64_t{*options_.placement.node_rank} * nproc;
      if (base >= place_.world_size) {
        return error(shown("node_rank", *options_.placement.node_rank) + " is no node of " +
                         shown("world_size", place_.world_size) + " with " + shown("nproc", nproc) +
                         " each: nodes count from 0",
                     {"node-rank", "world-size", "nproc"});
      }
      place_.base_rank = static_cast<int>(base);
      place_.node_rank = *options_.placement.node_rank;
    } else if (!options_.placement.node_rank) {
      place_.base_rank = *options_.placement.base_rank;
      if (!are_alike || place_.base_rank % nproc != 0)
        return unlike("node_rank", "base_rank", place_.base_rank);
      place_.node_rank = place_.base_rank / nproc;
    } else {
      place_.base_rank = *options_.placement.base_rank;
      place_.node_rank = *options_.placement.node_rank;
    }
    if (auto fits = check_last_rank(); !fits) return fits;
    if (auto fits = count_nodes(); !fits) return fits;
    return find_master();
  }

  Result<void> check_last_rank() {
    const int nproc = place_.process_count;
    const std::int64_t end = std::int64_t{place_.base_rank} + nproc;
    if (end <= place_.world_size) return {};
    return error("cannot initialize the processes of a node with " +
                     shown("base_rank", place_.base_rank) + " and " + shown("nproc", nproc) +
                     ": there would be a rank(" + std::to_string(end - 1) +
                     "), which must be less than " + shown("world_size", place_.world_size),
                 {"base-rank", "nproc", "world-size"});
  }

  Result<void> count_nodes() {
    // Where both were told, the nodes may have different numbers of processes, and need not be
    // numbered in the order of their ranks: what one of them computed another would contradict.
    const bool are_alike = !options_.placement.node_rank || !options_.placement.base_rank;
    place_.node_count.reset();
    if (says_nodes()) {
      place_.node_count = options_.placement.nodes.max;
    } else if (are_alike) {
      place_.node_count = place_.world_size / place_.process_count;
    }
    if (!place_.node_count || place_.node_rank < *place_.node_count) return {};
    return error(shown("node_rank", place_.node_rank) + " must be less than " +
                     shown("nnodes", *place_.node_count),
                 {"node-rank", "nnodes"});
  }

  Result<void> find_master() {
    const auto& addr = options_.master.addr ? options_.master.addr : options_.master.inherited_addr;
    const auto& port = options_.master.port ? options_.master.port : options_.master.inherited_port;
    for (const auto& [name, is_missing] :
         {Required{"master_addr", !addr || addr->empty()}, Required{"master_port", !port}}) {
      if (!is_missing) continue;
      return error("in a multi-node environment (" + sizes() + "), " + name +
                       " is required: give --" + name + ", of the node that has rank 0",
                   {"world-size", "nproc"});
    }
    place_.master_addr = *addr;
    place_.master_port = *port;
    return {};
  }

  /// Neither follows from the other.
  Error unlike(const char* missing, const char* said, int value) const {
    return error(std::string(missing) + " is not given, and does not follow from " +
                     shown(said, value) + ": the nodes appear to have different amounts of " +
                     "processes (" + sizes() + "); give --" + missing + " as well",
                 {"world-size", "nproc"});
  }

  std::string sizes() const {
    return shown("world_size", place_.world_size) + ", " + shown("nproc", place_.process_count);
  }

  bool says_nodes() const { return options_.given.find("nnodes") != options_.given.end(); }

  void warn_of(std::string_view variable) {
    place_.warnings.push_back(
        std::string(variable) +
        " is ignored, since this job has one node: its ranks get an address and a port of their "
        "own. --master_addr and --master_port are not ignored");
  }

  /// With the variables that have said one of the numbers.
  Error error(std::string why, std::initializer_list<std::string_view> options) const {
    for (const std::string_view option : options) {
      const auto found = options_.given.find(std::string(option));
      if (found == options_.given.end() || found->second.front() == '-') continue;
      why += "; " + std::string(option) + " is that of the variable " + found->second;
    }
    return base::failure(ErrorCode::invalid_argument, std::move(why));
  }

  struct Numbered {
    const char* name;
    const char* option;
    std::optional<int> value;
  };
  struct Required {
    const char* name;
    bool is_missing;
  };

  const LaunchOptions& options_;
  Placement place_;
};

}  // namespace

Result<Placement> placement_of(const LaunchOptions& options) { return Placing(options).run(); }

}  // namespace muster::launch
