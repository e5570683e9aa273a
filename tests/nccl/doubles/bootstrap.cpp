#include "nccl/doubles/bootstrap.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <utility>

#include "nccl/doubles/counts.h"
#include "nccl/doubles/faults.h"

// How ranks find each other: each checks in with the root, is told its successor by it, connects to
// that, and awaits its predecessor. Over this ring all tell who they are, and see then, each for
// itself, whether two have one GPU. The data's ring is connected by the first collective, or at
// once with NCCL_RUNTIME_CONNECT=0 (init.cc: initTransportsRank; group.cc: ncclCollPreconnect).
// What cannot end well ends as in NCCL: mostly never, without a word; a step that is stuck waits
// for the abort.

namespace nccl_double {
namespace {

/// What a step came to, beside NCCL's results.
constexpr int stuck = -1;

std::uint64_t host_hash() {
  static const std::uint64_t once = [] {
    std::string host;
    if (const char* const given = std::getenv("NCCL_HOSTID")) {
      host = given;
    } else {
      char name[256] = {};
      ::gethostname(name, sizeof name - 1);
      std::string boot;
      std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
      host = name + boot;
    }
    return std::hash<std::string>()(host);
  }();
  return once;
}

int fail(int result, const std::string& text) {
  set_last_error(text);
  return result;
}

int fault_of(const Communicator& own, Phase phase) {
  const InsideFault fault = fault_inside(phase, own.place.rank, own.stop);
  if (fault.is_forever || own.stop.is_set()) return stuck;
  return fault.result == 0 ? success : fail(fault.result, "a fault that was injected");
}

/// Where the root says that the successor is, in `successor`.
struct CheckedIn {
  int result = stuck;
  sockaddr_in successor{};
};
CheckedIn check_in(Communicator& own, const RootPlace& root) {
  if (root.address.sin_family != AF_INET) {
    return {fail(internal_error, "the id names no address"), {}};
  }
  own.for_root = listen_on_loopback();
  const Connected connected = connect_to(root.address, own.stop);
  if (connected.outcome == Outcome::refused) {
    return {fail(remote_error, "socketPollConnect: connection refused, retries exhausted"), {}};
  }
  if (connected.outcome != Outcome::done) return {};
  if (send(connected.socket, root.magic.data(), root.magic.size(), own.stop) != Outcome::done) {
    return {};
  }
  if (const int result = fault_of(own, Phase::check_in)) return {result, {}};
  CheckIn message;
  message.rank = own.place.rank;
  message.rank_count = own.place.rank_count;
  message.for_root = own.for_root.address;
  message.for_ring = own.peers.address();
  message.host_hash = host_hash();
  message.device = own.place.own_device.uuid;
  if (send(connected.socket, &message, sizeof message, own.stop) != Outcome::done) return {};
  const Connected from_root = accept_at(own.for_root.socket, own.stop);
  if (from_root.outcome != Outcome::done) return {};
  CheckedIn checked;
  const auto outcome =
      receive(from_root.socket, &checked.successor, sizeof checked.successor, own.stop);
  checked.result = outcome == Outcome::done ? success : stuck;
  own.for_root.socket.close();
  return checked;
}

/// Connects to the successor, and awaits the predecessor, however long that takes.
int connect_ring(Communicator& own, const sockaddr_in& successor) {
  const int rank = own.place.rank;
  const int count = own.place.rank_count;
  if (count == 1) return success;
  Connected next = own.peers.connect(successor, rank, Purpose::ring, 0, own.stop);
  if (next.outcome == Outcome::cancelled) return stuck;
  if (next.outcome != Outcome::done) return fail(remote_error, "the next rank cannot be reached");
  Connected previous = own.peers.accept((rank + count - 1) % count, Purpose::ring, 0, own.stop);
  if (previous.outcome != Outcome::done) return stuck;
  own.next = std::move(next.socket);
  own.previous = std::move(previous.socket);
  return success;
}

int exchange_members(Communicator& own) {
  own.members.resize(static_cast<std::size_t>(own.place.rank_count));
  own.members[static_cast<std::size_t>(own.place.rank)] = {own.peers.address(), host_hash(),
                                                           own.place.own_device.uuid};
  const Outcome outcome =
      all_gather(own, own.next, own.previous, own.members.data(), sizeof(Member), own.stop);
  if (outcome == Outcome::cancelled) return stuck;
  if (outcome == Outcome::done) return success;
  own.next.close();  // so that the neighbours see it, too
  own.previous.close();
  return fail(remote_error, "socketProgress: connection closed by remote peer");
}

int refuse_duplicates(const Communicator& own) {
  for (std::size_t i = 0; i < own.members.size(); ++i) {
    for (std::size_t j = i + 1; j < own.members.size(); ++j) {
      const Member& one = own.members[i];
      const Member& other = own.members[j];
      if (one.host_hash != other.host_hash || one.uuid != other.uuid) continue;
      return fail(invalid_usage, "Duplicate GPU detected : rank " + std::to_string(i) +
                                     " and rank " + std::to_string(j));
    }
  }
  return success;
}

/// Whether collectives connect when they need it.
bool connects_later() {
  const char* const value = std::getenv("NCCL_RUNTIME_CONNECT");
  return value == nullptr || std::atoi(value) != 0;
}

/// A peer that goes away here is not noticed.
int connect_ring_of_data(Communicator& own) {
  const int rank = own.place.rank;
  const int count = own.place.rank_count;
  if (count == 1 || own.data_next.is_open()) return success;
  const Member& successor = own.members[static_cast<std::size_t>((rank + 1) % count)];
  Connected next = own.peers.connect(successor.address, rank, Purpose::data, 0, own.stop);
  if (next.outcome != Outcome::done) return stuck;
  Connected previous = own.peers.accept((rank + count - 1) % count, Purpose::data, 0, own.stop);
  if (previous.outcome != Outcome::done) return stuck;
  own.data_next = std::move(next.socket);
  own.data_previous = std::move(previous.socket);
  std::vector<char> nothing(static_cast<std::size_t>(count));
  const Outcome outcome =
      all_gather(own, own.data_next, own.data_previous, nothing.data(), 1, own.stop);
  return outcome == Outcome::done ? success : stuck;
}

int become_ready(Communicator& own) {
  if (const int result = fault_of(own, Phase::connect)) return result;
  // Who connects later has more to tell all others before (init.cc: initTransportsRank).
  const int connected = connects_later() ? exchange_members(own) : connect_ring_of_data(own);
  if (connected != success) return connected;
  return fault_of(own, Phase::ready);
}

int find_others(Communicator& own, const RootPlace& root) {
  if (const int result = fault_of(own, Phase::init)) return result;
  const CheckedIn checked = check_in(own, root);
  if (checked.result != success) return checked.result;
  if (const int result = connect_ring(own, checked.successor)) return result;
  if (const int result = fault_of(own, Phase::ring)) return result;
  if (const int result = exchange_members(own)) return result;
  if (const int result = refuse_duplicates(own)) return result;
  return become_ready(own);
}

int concluded(const Communicator& own, int result) {
  if (result != stuck) return result;
  own.stop.wait();
  return internal_error;
}

int ready_if(Communicator& own, int result) {
  if (result == success) own.set_ready();
  return concluded(own, result);
}

}  // namespace

int initialize(Communicator& communicator, const UniqueId& id) {
  return ready_if(communicator, find_others(communicator, place_of(id)));
}

int initialize_child(Communicator& child) {
  const int met = exchange_members(child);
  return ready_if(child, met == success ? become_ready(child) : met);
}

int connect_data(Communicator& communicator) {
  return concluded(communicator, connect_ring_of_data(communicator));
}

Outcome all_gather(const Communicator& communicator, const Socket& next, const Socket& previous,
                   void* blocks, std::size_t size_bytes, const Cancel& cancel) {
  const int count = communicator.place.rank_count;
  const auto block_of = [&](int rank) {
    return static_cast<char*>(blocks) + static_cast<std::size_t>(rank % count) * size_bytes;
  };
  for (int step = 0; step < count - 1; ++step) {
    const int sent = communicator.place.rank + count - step;
    const Outcome outcome = exchange(sending(next, block_of(sent), size_bytes),
                                     receiving(previous, block_of(sent - 1), size_bytes), cancel);
    if (outcome != Outcome::done) return outcome;
  }
  return count == 1 ? Outcome::done : finish_round(next, previous, cancel);
}

}  // namespace nccl_double
