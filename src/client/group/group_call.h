#pragma once

#include "client/checks.h"
#include "client/failure.h"
#include "client/group/group.h"

// How the calls of a group are made: arguments first, then what needs memory, and a number last, so
// that what is refused has never counted.

namespace muster::client {

inline const Error* error_of(const Outcome& outcome) {
  return outcome.reply ? nullptr : &outcome.reply.error();
}

template <class T>
PreparedCall<T> Group::call(std::string_view operation, Duration timeout) {
  PreparedCall<T> call;
  call.context = {operation, name_, epoch()};
  call.ticket.mark = mark_;
  auto resolved = timeout_or(timeout, options_.timeout);
  if (resolved) {
    call.timeout = *resolved;
  } else {
    call.refused = std::move(resolved).error();
  }
  return call;
}

/// Whether nothing is wrong with the call so far.
template <class T>
bool Group::check(PreparedCall<T>& call) {
  if (!call.refused) call.refused = refusal_of(call.body, link_->limits());
  return !call.refused;
}

template <class T>
void Group::refuse_if_ended(PreparedCall<T>& call) {
  numbers_.with_state([&call](const protocol::GroupState& state) {
    if (const Error* const ended = state.ended()) call.refused = *ended;
  });
}

template <class T>
bool check_rank(const Group& group, PreparedCall<T>& call, const char* what, Rank rank) {
  if (rank.number >= 0 && rank.number < group.world_size()) return true;
  if (!call.refused) {
    call.refused = invalid_argument(std::string(what) + " " + std::to_string(rank.number) +
                                    ": ranks are 0 to " + std::to_string(group.world_size() - 1));
  }
  return false;
}

}  // namespace muster::client
