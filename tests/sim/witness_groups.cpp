#include <algorithm>

#include "oracle.h"
#include "wire/error_body.h"
#include "witness.h"

// What must form, forms: after each event no complete group, and no complete regroup, waits. Where
// it is not known for sure who is there, nothing is said.

namespace muster::sim {

using wire::Operation;

/// Whether it may be a member that has to be waited for.
bool Witness::may_live(const Epoch& epoch, std::uint32_t rank, std::uint64_t session) const {
  return epoch.gone.count(rank) == 0 && sessions_.count(session) != 0;
}

Witness::Callers Witness::callers_of(const std::string& group, const Epoch* epoch) const {
  Callers callers;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [request, asked] : session.asked) {
      const bool joins = asked.operation == wire::operation<wire::Join> && asked.group == group;
      const auto its_epoch = epochs_.find(asked.epoch);
      const bool regroups = asked.operation == wire::operation<wire::Regroup> &&
                            its_epoch != epochs_.end() && its_epoch->second.group == group;
      if (!asked.is_open || (!joins && !regroups)) continue;
      if (!asked.is_sure || (joins && callers.size != 0 && callers.size != asked.size) ||
          (regroups && &its_epoch->second != epoch)) {
        callers.is_in_doubt = true;
        return callers;
      }
      if (joins) callers.size = asked.size;
      if (joins) callers.joins[asked.rank].insert(id);
      if (regroups) callers.sizes[id] = {asked.size, asked.min_size};
    }
  }
  return callers;
}

void Witness::check_forming(const std::string& group) {
  const auto newest = newest_.find(group);
  const Epoch* const epoch = newest == newest_.end() ? nullptr : &epochs_.at(newest->second);
  const bool is_known = epoch == nullptr || (!epoch->is_over && !epoch->may_be_over &&
                                             epoch->sessions.size() == epoch->size);
  if (!is_known) return;
  const Callers callers = callers_of(group, epoch);
  if (callers.is_in_doubt) return;
  std::set<std::uint32_t> held;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> sizes;
  for (std::uint32_t rank = 0; epoch != nullptr && rank < epoch->size; ++rank) {
    const std::uint64_t session = epoch->sessions.at(rank);
    if (!may_live(*epoch, rank, session)) continue;
    held.insert(rank);
    const auto called = callers.sizes.find(session);
    if (called == callers.sizes.end()) return;  // it is waited for
    if (sizes && *sizes != called->second) return;
    sizes = called->second;
  }
  const std::uint32_t size = held.empty() ? callers.size : sizes->first;
  if (held.empty() && size == 0) return;  // nobody joins
  const bool takes_everyone = size == wire::Regroup::everyone;
  std::set<std::uint64_t> others;
  for (std::uint32_t rank = 0; rank < size && !takes_everyone; ++rank) {
    if (held.count(rank) != 0) continue;
    const auto joins = callers.joins.find(rank);
    if (joins == callers.joins.end() || callers.size != size) return;
    others.insert(joins->second.begin(), joins->second.end());
  }
  if (!takes_everyone && others.size() + held.size() < size) return;
  problem(held.empty() ? "all ranks of group " + group + " have joined, and it does not form"
                       : "all have come to a regroup of group " + group +
                             ", and the next epoch does not form");
}

/// What follows from what the server knows of the epoch.
void Witness::check_error(const Session& session, const Asked& asked,
                          const core::SendReply& reply) {
  const auto code = static_cast<ErrorCode>(reply.code);
  if (code == ErrorCode::invalid_argument && asked.operation == wire::operation<wire::Regroup>) {
    return check_too_small(asked);
  }
  if (code != ErrorCode::group_closed && code != ErrorCode::rank_lost) return;
  std::string body = reply.head;
  body += reply.value;
  if (reply.tail != nullptr) body += reply.tail->view();
  const auto error = wire::decode_error(reply.code, body);
  if (!error) return problem("an error that cannot be read");
  if (code == ErrorCode::group_closed) return check_closed(asked, *error);
  const auto epoch = epochs_.find(error->epoch);
  // R7: what was decided while its caller was away stays as it was.
  const bool is_kept = asked.is_repeated && is_in_hand(session, reply.request_id);
  const bool of_regroup = asked.operation == wire::operation<wire::Regroup> ||
                          asked.operation == wire::operation<wire::Join>;  // only those since
  if (epoch != epochs_.end() && !is_kept && !of_regroup) {
    check_all_lost_are_named(epoch->second, *error);
  }
}

/// A size is refused only while a rank beyond it lives, since survivors keep their ranks.
void Witness::check_too_small(const Asked& asked) {
  const auto found = epochs_.find(asked.epoch);
  if (found == epochs_.end()) return;
  const Epoch& epoch = found->second;
  for (std::uint32_t rank = asked.size; asked.size != 0 && rank < epoch.size; ++rank) {
    const auto holder = epoch.sessions.find(rank);
    if (holder == epoch.sessions.end() || may_live(epoch, rank, holder->second)) return;
  }
  problem("a regroup of group " + epoch.group + " is refused, although its size fits");
}

/// J8 and J9: only a whole group is closed.
void Witness::check_closed(const Asked& asked, const Error& error) {
  const auto found = epochs_.find(error.epoch);
  if (found == epochs_.end()) return;
  const Epoch& epoch = found->second;
  if (!epoch.is_broken && epoch.left.count(asked.rank) == 0) return;
  problem("a join of group " + asked.group + " is refused as if it were whole");
}

}  // namespace muster::sim
