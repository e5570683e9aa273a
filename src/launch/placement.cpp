#include "launch/placement.h"

#include <utility>

#include "base/failure.h"

namespace muster::launch {

namespace {

Error refused(std::string why) {
  return base::failure(ErrorCode::invalid_argument, std::move(why));
}

std::string with_number(const char* name, int number) {
  return std::string(name) + "(" + std::to_string(number) + ")";
}

Result<Placement> place_on_one(const LaunchOptions& options) {
  for (const auto& [name, rank] :
       {std::pair("base_rank", options.base_rank), std::pair("node_rank", options.node_rank)}) {
    if (rank.value_or(0) != 0) {
      return refused(with_number(name, *rank) +
                     " is not 0, and a job of a single node has no other one: give --world_size, "
                     "or --rendezvous, if there are more nodes");
    }
  }
  return Placement();
}

Result<Placement> place_on_several(const LaunchOptions& options, int world_size) {
  const int count = options.process_count;
  Placement placement;
  placement.is_multi_node = true;
  placement.world_size = world_size;
  if (!options.base_rank && !options.node_rank) {
    return refused(
        "in a multi-node environment at least one of node_rank and base_rank is "
        "required: give --node_rank, or --rendezvous, where nodes get their ranks");
  }
  const std::string uneven = "; nodes appear to have different amounts of processes: ";
  if (!options.node_rank && (world_size % count != 0 || *options.base_rank % count != 0)) {
    return refused("node_rank was not told and does not follow from " +
                   with_number("base_rank", *options.base_rank) + uneven +
                   "specify node_rank, too");
  }
  if (!options.base_rank && world_size % count != 0) {
    return refused("base_rank was not told and does not follow from " +
                   with_number("node_rank", *options.node_rank) + uneven +
                   "provide base_rank, too");
  }
  placement.node_rank = options.node_rank ? *options.node_rank : *options.base_rank / count;
  placement.base_rank = options.base_rank ? *options.base_rank : *options.node_rank * count;
  placement.node_count = (world_size + count - 1) / count;
  if (placement.node_rank >= placement.node_count) placement.node_count = placement.node_rank + 1;
  if (placement.base_rank < 0 || placement.base_rank + count > world_size) {
    return refused("this node cannot have " + with_number("base_rank", placement.base_rank) +
                   " and " + with_number("nproc", count) + ": its last process would be rank(" +
                   std::to_string(placement.base_rank + count - 1) + "), and all ranks are below " +
                   with_number("world_size", world_size));
  }
  if (!options.master_addr)
    return refused(
        "in a multi-node environment master_addr is required: give --master_addr, or "
        "--rendezvous");
  if (!options.master_port)
    return refused(
        "in a multi-node environment master_port is required: give --master_port, or "
        "--rendezvous");
  placement.master_addr = *options.master_addr;
  placement.master_port = *options.master_port;
  return placement;
}

}  // namespace

Result<Placement> place(const LaunchOptions& options) {
  const int count = options.process_count;
  if (count < 1) return refused("nproc must be 1 or greater, not " + std::to_string(count));
  const int world_size = options.world_size.value_or(options.nodes.max * count);
  if (world_size < 1)
    return refused("world_size must be 1 or greater, not " + std::to_string(world_size));
  if (world_size < count) {
    return refused(with_number("world_size", world_size) + " cannot be less than " +
                   with_number("nproc", count));
  }
  auto placed = world_size == count ? place_on_one(options) : place_on_several(options, world_size);
  if (placed) placed->world_size = world_size;
  return placed;
}

}  // namespace muster::launch
