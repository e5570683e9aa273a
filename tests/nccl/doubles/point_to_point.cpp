#include <poll.h>

#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "nccl/doubles/counts.h"
#include "nccl/doubles/data_types.h"
#include "nccl/doubles/faults.h"
#include "nccl/doubles/operations.h"

// Sends and receives of one group. A pair of ranks has a connection for each direction, a lane,
// which both make before they first need it: the sender connects, the receiver accepts it and says
// so. Only then is the group launched (group.cc: ncclP2PPreconnectFunc). Every lane goes on by
// itself, its messages in order, each behind a header; a header that differs sticks the group.

namespace nccl_double {
namespace {

struct MessageHeader {
  std::uint64_t number = 0;
  std::uint64_t count = 0;
  std::int32_t type = 0;
  std::int32_t unused = 0;
  bool operator==(const MessageHeader&) const = default;
};

struct Message {
  Operation operation;
  MessageHeader own;     ///< as this rank has it; what is sent
  MessageHeader theirs;  ///< what is received
};

/// One lane, and what is left to go over it. The messages stay where they are.
struct Traffic {
  int descriptor = -1;
  std::deque<Message> messages;
  Transfer transfer;
  enum class Part { none, header, payload } part = Part::none;
};

std::string text_of(const MessageHeader& header) {
  return "message " + std::to_string(header.number) + " of " + std::to_string(header.count) +
         " elements of type " + std::to_string(header.type);
}

Communicator::Lane& lane_of(Communicator& own, const Operation& operation) {
  auto& lanes = operation.kind == Kind::send ? own.lanes_out : own.lanes_in;
  return lanes[static_cast<std::size_t>(operation.root)];
}

/// Sends or receives, the one byte by which a receiver says that it has a lane.
Outcome connect_lane(Communicator& own, const Operation& operation) {
  const int peer = operation.root;
  Connected connected;
  if (operation.kind == Kind::send) {
    const sockaddr_in& address = own.members[static_cast<std::size_t>(peer)].address;
    connected = own.peers.connect(address, own.place.rank, Purpose::point_to_point, 0, own.stop);
  } else {
    connected = own.peers.accept(peer, Purpose::point_to_point, 0, own.stop);
    const char byte = 'l';
    if (connected.outcome == Outcome::done) {
      connected.outcome = send(connected.socket, &byte, 1, own.stop);
    }
  }
  if (connected.outcome == Outcome::done)
    lane_of(own, operation).socket = std::move(connected.socket);
  return connected.outcome;
}

class GroupTraffic {
 public:
  explicit GroupTraffic(Communicator& own) : own_(own) {}

  void run(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) {
      operation.root == own_.place.rank ? add_to_self(operation) : add(operation);
    }
    while (!is_complete()) {
      if (!progress()) return;
    }
    ++counts().collectives;
  }

 private:
  void add(const Operation& operation) {
    Communicator::Lane& lane = lane_of(own_, operation);
    Traffic& traffic = traffic_[lane.socket.descriptor()];
    traffic.descriptor = lane.socket.descriptor();
    const MessageHeader header{lane.number++, operation.count, operation.type, 0};
    traffic.messages.push_back({operation, header, {}});
  }

  /// A send to itself and the receive that belongs to it, whichever comes first.
  void add_to_self(const Operation& operation) {
    if (!to_self_.empty() && to_self_.front().kind != operation.kind) {
      const Operation other = to_self_.front();
      to_self_.pop_front();
      const bool is_send = operation.kind == Kind::send;
      const void* const from = is_send ? operation.from : other.from;
      void* const to = is_send ? other.to : operation.to;
      if (operation.count > 0) {
        std::memmove(to, from, operation.count * size_of_type(operation.type));
      }
    } else {
      to_self_.push_back(operation);
    }
  }

  bool is_complete() const {
    for (const auto& [descriptor, traffic] : traffic_) {
      if (!traffic.messages.empty()) return false;
    }
    return true;
  }

  bool progress() {
    std::vector<pollfd> waited{{own_.stop_operations.descriptor(), POLLIN, 0}};
    for (auto& [descriptor, traffic] : traffic_) {
      if (traffic.messages.empty()) continue;
      const bool is_send = traffic.messages.front().operation.kind == Kind::send;
      waited.push_back({descriptor, static_cast<short>(is_send ? POLLOUT : POLLIN), 0});
    }
    if (own_.stop_operations.is_set()) return false;
    ::poll(waited.data(), waited.size(), -1);
    for (std::size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0 && !go_on(traffic_.at(waited[i].fd))) return false;
    }
    return !own_.stop_operations.is_set();
  }

  /// The next part of the lane's first message.
  bool go_on(Traffic& traffic) {
    Message& message = traffic.messages.front();
    if (traffic.part == Traffic::Part::none) begin(traffic, Traffic::Part::header);
    const Moved moved = move(traffic.transfer);
    if (moved == Moved::closed) return lose_peer();
    if (moved == Moved::some) return true;
    if (traffic.part == Traffic::Part::header) {
      if (message.operation.kind == Kind::receive && message.theirs != message.own) {
        set_last_mismatch("this rank receives " + text_of(message.own) + "; rank " +
                          std::to_string(message.operation.root) + " sends " +
                          text_of(message.theirs));
        own_.stick();
        return false;
      }
      begin(traffic, Traffic::Part::payload);
      if (traffic.transfer.left > 0) return true;
    }
    traffic.messages.pop_front();
    traffic.part = Traffic::Part::none;
    return true;
  }

  static void begin(Traffic& traffic, Traffic::Part part) {
    Message& message = traffic.messages.front();
    const bool is_send = message.operation.kind == Kind::send;
    const std::size_t size = message.operation.count * size_of_type(message.operation.type);
    traffic.part = part;
    traffic.transfer.descriptor = traffic.descriptor;
    traffic.transfer.direction = is_send ? Transfer::Direction::send : Transfer::Direction::receive;
    traffic.transfer.left = part == Traffic::Part::header ? sizeof(MessageHeader) : size;
    if (part == Traffic::Part::header) {
      traffic.transfer.bytes = reinterpret_cast<char*>(is_send ? &message.own : &message.theirs);
    } else {
      traffic.transfer.bytes = is_send
                                   ? static_cast<char*>(const_cast<void*>(message.operation.from))
                                   : static_cast<char*>(message.operation.to);
    }
  }

  bool lose_peer() {
    set_last_error("NET/Socket : remote peer has closed its connection");
    own_.fail_operation(remote_error);
    own_.stick();
    return false;
  }

  Communicator& own_;
  std::map<int, Traffic> traffic_;
  std::deque<Operation> to_self_;
};

}  // namespace

int connect_lanes(Communicator& own, const std::vector<Operation>& operations) {
  std::vector<Communicator::Lane*> begun;
  const auto outcome_of = [&](Kind kind) {
    for (const Operation& operation : operations) {
      Communicator::Lane& lane = lane_of(own, operation);
      if (operation.kind != kind || operation.root == own.place.rank || lane.socket.is_open()) {
        continue;
      }
      const Outcome outcome = connect_lane(own, operation);
      if (outcome != Outcome::done) return outcome;
      if (kind == Kind::send) begun.push_back(&lane);
    }
    return Outcome::done;
  };
  Outcome outcome = outcome_of(Kind::send);  // first, since nobody waits for that
  if (outcome == Outcome::done) outcome = outcome_of(Kind::receive);
  for (Communicator::Lane* const lane : begun) {
    char byte = 0;
    if (outcome == Outcome::done) outcome = receive(lane->socket, &byte, 1, own.stop);
  }
  if (outcome == Outcome::done) return success;
  if (outcome == Outcome::cancelled) return internal_error;
  set_last_error("socketProgress: connection closed by remote peer");
  return remote_error;
}

void run_point_to_point(Communicator& own, const std::vector<Operation>& operations) {
  const InsideFault fault = fault_inside(Phase::collective, own.place.rank, own.stop_operations);
  if (fault.result != 0) own.fail_operation(fault.result);
  if (fault.result != 0 || fault.is_forever) return own.stick();
  GroupTraffic(own).run(operations);
}

}  // namespace nccl_double
