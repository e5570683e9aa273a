#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>
#include <vector>

#include "nccl/doubles/bootstrap.h"
#include "nccl/doubles/counts.h"
#include "nccl/doubles/exported.h"
#include "nccl/doubles/group.h"
#include "nccl/doubles/initialize.h"

// Of NCCL's interface: communicators that are made of another, and the revocation of one. A split
// gathers all colors over the parent's ring, in a thread of the parent, whose result is in_progress
// meanwhile; the child's handle is given when that is over, however it ended. A shrink knows its
// members at once. The child's ring is connected through the parent's listeners; then the child
// goes on by itself.

using namespace nccl_double;

namespace {

struct Choice {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

/// The members of a child, by their ranks in the parent, in the order of those in the child.
struct Family {
  Communicator& parent;
  std::vector<int> members;
  std::uint64_t child_number;
  bool is_blocking;
};

void give(void** handle, const CommunicatorPointer& child) {
  std::atomic_ref<void*>(*handle).store(child.get());
}

Magic magic_of_child(const Family& family) {
  Magic magic = family.parent.place.magic;
  magic[0] = static_cast<char>(magic[0] ^ static_cast<char>(family.child_number));
  magic[1] = static_cast<char>(magic[1] ^ static_cast<char>(family.members.front() + 1));
  return magic;
}

/// The child without its ring.
CommunicatorPointer make_child(const Family& family) {
  const auto& members = family.members;
  const auto own = std::find(members.begin(), members.end(), family.parent.place.rank);
  return make_communicator({static_cast<int>(own - members.begin()),
                            static_cast<int>(members.size()), family.parent.place.own_device,
                            family.is_blocking, magic_of_child(family)});
}

Outcome connect_ring_of_child(const Family& family, Communicator& child) {
  Communicator& parent = family.parent;
  const auto count = family.members.size();
  const auto rank = static_cast<std::size_t>(child.place.rank);
  if (count == 1) return Outcome::done;
  const int successor = family.members[(rank + 1) % count];
  const int predecessor = family.members[(rank + count - 1) % count];
  const sockaddr_in& address = parent.members[static_cast<std::size_t>(successor)].address;
  Connected next = parent.peers.connect(address, parent.place.rank, Purpose::child_ring,
                                        family.child_number, parent.stop);
  if (next.outcome != Outcome::done) return next.outcome;
  Connected previous =
      parent.peers.accept(predecessor, Purpose::child_ring, family.child_number, parent.stop);
  if (previous.outcome != Outcome::done) return previous.outcome;
  child.next = std::move(next.socket);
  child.previous = std::move(previous.socket);
  return Outcome::done;
}

/// In a thread of the parent: brings a child into the world, or what is left of it. Gives what
/// comes of it for the parent.
int bear(const Family& family, void** handle) {
  const CommunicatorPointer child = make_child(family);
  const Outcome outcome = connect_ring_of_child(family, *child);
  if (outcome != Outcome::done) {
    const int result = outcome == Outcome::cancelled ? internal_error : remote_error;
    child->set_result(result);
    give(handle, child);
    return result;
  }
  if (!family.is_blocking) begin_alone({child, [child] { return initialize_child(*child); }});
  give(handle, child);
  return family.is_blocking ? initialize_child(*child) : static_cast<int>(success);
}

int split(Communicator& parent, Choice own, void** handle, bool is_blocking) {
  std::vector<Choice> choices(static_cast<std::size_t>(parent.place.rank_count));
  choices[static_cast<std::size_t>(parent.place.rank)] = own;
  const std::uint64_t number = parent.child_count++;
  const Outcome outcome =
      all_gather(parent, parent.next, parent.previous, choices.data(), sizeof(Choice), parent.stop);
  if (outcome != Outcome::done) {
    const int result = outcome == Outcome::cancelled ? internal_error : remote_error;
    const auto child = make_child({parent, {parent.place.rank}, number, is_blocking});
    child->set_result(result);
    give(handle, child);
    return result;
  }
  if (own.color == split_no_color) return success;
  std::vector<int> members;
  for (int rank = 0; rank < parent.place.rank_count; ++rank) {
    if (choices[static_cast<std::size_t>(rank)].color == own.color) members.push_back(rank);
  }
  const auto order = [&](int rank) {
    return std::tuple(choices[static_cast<std::size_t>(rank)].key, rank);
  };
  std::sort(members.begin(), members.end(),
            [&](int one, int other) { return order(one) < order(other); });
  return bear({parent, members, number, is_blocking}, handle);
}

/// Of a communicator that may have failed, but is not gone or busy.
int refusal_of_failed(const Communicator& communicator) {
  if (communicator.is_gone()) return invalid_argument;
  return communicator.result() == in_progress ? invalid_argument : success;
}

}  // namespace

DOUBLE_EXPORT int ncclCommSplit(void* handle, int color, int key, void** child,
                                const Config* config) {
  const auto parent = find_communicator(handle);
  if (parent == nullptr || child == nullptr) return invalid_argument;
  if (const int result = parent->refusal()) return result;
  const Blocking blocking = blocking_of(config, {parent->place.is_blocking, success});
  if (blocking.result != success) return blocking.result;
  *child = nullptr;
  return do_job({parent, [=, own = parent.get()] {
                   return split(*own, {color, key}, child, blocking.is_blocking);
                 }});
}

DOUBLE_EXPORT int ncclCommShrink(void* handle, const int* excluded, int excluded_count,
                                 void** child, const Config* config, int flags) {
  const auto parent = find_communicator(handle);
  if (parent == nullptr || child == nullptr || excluded == nullptr || excluded_count <= 0) {
    return invalid_argument;
  }
  const bool is_abort = (flags & shrink_abort) != 0;
  if (const int result = is_abort ? refusal_of_failed(*parent) : parent->refusal()) return result;
  const Blocking blocking = blocking_of(config, {parent->place.is_blocking, success});
  if (blocking.result != success) return blocking.result;
  std::vector<int> members;
  for (int rank = 0; rank < parent->place.rank_count; ++rank) {
    if (std::find(excluded, excluded + excluded_count, rank) == excluded + excluded_count) {
      members.push_back(rank);
    }
  }
  const int own_rank = parent->place.rank;
  if (std::find(members.begin(), members.end(), own_rank) == members.end()) return invalid_argument;
  *child = nullptr;
  if (is_abort) {
    parent->revoke();
  }
  return do_job({parent, [=, own = parent.get()] {
                   if (is_abort) own->wait_for_running_operations();
                   return bear({*own, members, own->child_count++, blocking.is_blocking}, child);
                 }});
}

DOUBLE_EXPORT int ncclCommRevoke(void* handle, int flags) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr || flags != 0) return invalid_argument;
  if (const int result = refusal_of_failed(*communicator)) return result;
  communicator->revoke();
  return do_job({communicator, [own = communicator.get()] {
                   own->wait_for_running_operations();
                   return success;
                 }});
}
