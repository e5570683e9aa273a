#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "nccl/doubles/counts.h"
#include "nccl/doubles/data_types.h"
#include "nccl/doubles/faults.h"
#include "nccl/doubles/operations.h"

// A collective: what each rank contributes goes once around the ring, each piece behind a header
// that says what its sender takes the operation for, and then each rank calculates for itself.
// Where a header differs from the own one, the operation goes no further, as NCCL's would hang.

namespace nccl_double {
namespace {

constexpr const char* operation_names[] = {"all_reduce",     "broadcast", "reduce", "all_gather",
                                           "reduce_scatter", "send",      "receive"};

struct CollectiveHeader {
  std::uint64_t number = 0;
  std::uint64_t count = 0;
  Kind kind{};
  std::int32_t type = 0;
  std::int32_t reduction = 0;
  std::int32_t root = 0;
  bool operator==(const CollectiveHeader&) const = default;
};

std::string text_of(const CollectiveHeader& header) {
  return std::string(operation_names[static_cast<std::size_t>(header.kind)]) + " number " +
         std::to_string(header.number) + " of " + std::to_string(header.count) +
         " elements of type " + std::to_string(header.type) + ", reduction " +
         std::to_string(header.reduction) + ", root " + std::to_string(header.root);
}

class Collective {
 public:
  Collective(Communicator& own, const Operation& operation)
      : own_(own),
        operation_(operation),
        header_{own.collective_number++, operation.count,     operation.kind,
                operation.type,          operation.reduction, operation.root},
        size_(size_of_type(operation.type) * operation.count),
        blocks_(static_cast<std::size_t>(own.place.rank_count)) {}

  void run() {
    for (int rank = 0; rank < own_.place.rank_count; ++rank) {
      blocks_[static_cast<std::size_t>(rank)].resize(contribution_of(rank));
    }
    std::vector<char>& mine = blocks_[static_cast<std::size_t>(own_.place.rank)];
    if (!mine.empty()) std::memcpy(mine.data(), operation_.from, mine.size());
    if (const auto& op = operation_.red_op) {
      scale(op->type, op->address != nullptr ? op->address : op->factor.data(), mine);
    }
    if (!pass_around()) return;
    if (size_ > 0) calculate();
    ++counts().collectives;
  }

 private:
  std::size_t contribution_of(int rank) const {
    if (operation_.kind == Kind::broadcast && rank != operation_.root) return 0;
    return operation_.kind == Kind::reduce_scatter ? size_ * blocks_.size() : size_;
  }

  /// False: it is over, and has stuck before.
  bool pass_around() {
    const std::size_t count = blocks_.size();
    for (std::size_t step = 0; step + 1 < count; ++step) {
      const std::size_t sent = (static_cast<std::size_t>(own_.place.rank) + count - step) % count;
      std::vector<char>& out = blocks_[sent];
      std::vector<char>& in = blocks_[(sent + count - 1) % count];
      CollectiveHeader theirs;
      if (!swap(&header_, sizeof header_, &theirs, sizeof theirs)) return false;
      if (theirs != header_) {
        set_last_mismatch("this rank: " + text_of(header_) +
                          "; the one before: " + text_of(theirs));
        own_.stick();
        return false;
      }
      if (!swap(out.data(), out.size(), in.data(), in.size())) return false;
    }
    return count == 1 ||
           check(finish_round(own_.data_next, own_.data_previous, own_.stop_operations));
  }

  bool swap(const void* out, std::size_t out_size, void* in, std::size_t in_size) {
    return check(exchange(sending(own_.data_next, out, out_size),
                          receiving(own_.data_previous, in, in_size), own_.stop_operations));
  }

  bool check(Outcome outcome) {
    if (outcome == Outcome::closed) {
      set_last_error("NET/Socket : remote peer has closed its connection");
      own_.fail_operation(remote_error);
      own_.stick();
    }
    return outcome == Outcome::done;
  }

  void calculate() {
    auto* const to = static_cast<char*>(operation_.to);
    const auto rank = static_cast<std::size_t>(own_.place.rank);
    const auto root = static_cast<std::size_t>(operation_.root);
    std::vector<const char*> blocks;
    for (const auto& block : blocks_) blocks.push_back(block.data());
    switch (operation_.kind) {
      case Kind::broadcast: std::memcpy(to, blocks[root], size_); break;
      case Kind::all_gather:
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          std::memcpy(to + i * size_, blocks[i], size_);
        }
        break;
      case Kind::reduce_scatter:
        for (const char*& block : blocks) block += rank * size_;
        [[fallthrough]];
      default:
        if (operation_.kind == Kind::reduce && rank != root) break;
        reduce(operation_.reduction, operation_.type, blocks, operation_.count, to);
    }
  }

  Communicator& own_;
  const Operation& operation_;
  const CollectiveHeader header_;
  const std::size_t size_;
  std::vector<std::vector<char>> blocks_;
};

}  // namespace

namespace {

bool checks_pointers() {
  const char* const value = std::getenv("NCCL_CHECK_POINTERS");
  return value != nullptr && std::atoi(value) != 0;
}

}  // namespace

int refusal_of_arguments(const Communicator& own, const Operation& operation) {
  const auto refuse = [](const char* what) {
    set_last_error(std::string("invalid argument: ") + what);
    return static_cast<int>(invalid_argument);
  };
  if (size_of_type(operation.type) == 0) return refuse("type");
  const bool is_built_in = operation.reduction >= 0 && operation.reduction < reduction_count;
  if (!is_built_in && !own.red_ops.find(operation.reduction)) return refuse("op");
  if (operation.root < 0 || operation.root >= own.place.rank_count) return refuse("root");
  const bool is_root = own.place.rank == operation.root;
  const bool reads =
      operation.kind != Kind::receive && (operation.kind != Kind::broadcast || is_root);
  const bool writes = operation.kind != Kind::send && (operation.kind != Kind::reduce || is_root);
  if (operation.count > 0 && reads && operation.from == nullptr) return refuse("sendbuff");
  if (operation.count > 0 && writes && operation.to == nullptr) return refuse("recvbuff");
  if (!checks_pointers()) return success;
  if (operation.count > 0 && reads && !is_device_memory(operation.from)) return refuse("sendbuff");
  if (operation.count > 0 && writes && !is_device_memory(operation.to)) return refuse("recvbuff");
  return success;
}

// As enqueue.cc has it in taskAppend and hostToDevRedOp.
int take_red_op(const Communicator& own, Operation& operation) {
  operation.red_op = own.red_ops.find(operation.reduction);
  if (!operation.red_op) return success;
  operation.reduction = scaled_sum;
  if (operation.red_op->type == operation.type) return success;
  set_last_error("invalid argument: op, which was made for another type");
  return invalid_argument;
}

void run_collective(Communicator& own, const Operation& operation) {
  const InsideFault fault = fault_inside(Phase::collective, own.place.rank, own.stop_operations);
  if (fault.result != 0) {
    set_last_error("a fault that was injected");
    own.fail_operation(fault.result);
  }
  if (fault.result != 0 || fault.is_forever) return own.stick();
  Collective(own, operation).run();
}

}  // namespace nccl_double
