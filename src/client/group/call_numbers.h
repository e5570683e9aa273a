#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "client/call.h"
#include "client/protocol/group_state.h"
#include "muster/process_group_options.h"

namespace muster::client {

/// The numbers of a group's calls: its GroupState under a lock, and the order in which the calls
/// that carry the numbers leave.
class CallNumbers {
 public:
  explicit CallNumbers(const wire::FormedReply& formed) : state_(formed) {}

  /// Gives the call the number that `begin(state)` takes, or why there is none. The call counts
  /// from here on, and the next one waits until this one was submitted.
  template <class T, class Begin>
  std::optional<std::uint64_t> give(PreparedCall<T>& call, Begin begin) {
    call.is_counted = true;
    call.order = std::unique_lock(order_);
    const std::lock_guard lock(mutex_);
    Result<std::uint64_t> number = begin(state_);
    if (number) return *number;
    call.refused = std::move(number).error();
    call.order.unlock();
    return std::nullopt;
  }

  /// What `use(state)` returns.
  template <class Use>
  auto with_state(Use use) {
    const std::lock_guard lock(mutex_);
    return use(state_);
  }

  GroupCounters counters() {
    return with_state([](const protocol::GroupState& state) {
      return GroupCounters{state.rounds(), state.objects_sent(), state.objects_received()};
    });
  }

  /// What the next call on a stream of this rank would send, or receive.
  StreamPosition next_to(Rank destination, Tag tag) {
    return with_state([=](const protocol::GroupState& state) {
      const auto peer = static_cast<std::uint32_t>(destination.number);
      return StreamPosition{static_cast<int>(state.formed().rank), destination.number, tag.number,
                            state.next_to_send(peer, tag.number)};
    });
  }
  StreamPosition next_from(Rank source, Tag tag) {
    return with_state([=](const protocol::GroupState& state) {
      const auto peer = static_cast<std::uint32_t>(source.number);
      return StreamPosition{source.number, static_cast<int>(state.formed().rank), tag.number,
                            state.next_to_receive(peer, tag.number)};
    });
  }

 private:
  /// Held from taking a number until the call that carries it is submitted. Before `mutex_`.
  std::mutex order_;
  std::mutex mutex_;
  protocol::GroupState state_;
};

}  // namespace muster::client
