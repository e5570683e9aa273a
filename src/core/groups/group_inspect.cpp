#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "core/groups/group_entries.h"
#include "core/groups/groups_state.h"
#include "core/session/failure.h"
#include "core/session/reply.h"

// What operators are told of groups: who is in, who is missing, who waits for whom. Nothing here
// changes anything.

namespace muster::core {
namespace {

/// Of a group that forms.
void tell_of_joiners(const EngineServices& services, const Joiners& joiners,
                     wire::InspectGroupReply& reply) {
  for (const auto& [arrival, joiner] : joiners.all()) {
    if (joiner->waits.empty()) continue;
    reply.age = services.now() - joiner->waits.first().parked.received;
    break;
  }
  const Forming& forming = joiners.forming();
  if (forming.empty()) return;
  std::uint32_t next = 0;
  const auto close_gap = [&](std::uint32_t end) {
    if (next < end) reply.missing.push_back({static_cast<int>(next), static_cast<int>(end) - 1});
    next = end + 1;
  };
  for (const Joiner* const seated : forming.joiners()) {
    close_gap(seated->rank);
    reply.members.push_back(entry_of(services, seated->rank, seated->session));
  }
  close_gap(forming.world_size());
}

/// The reply views `calls`.
void tell_of_epoch(const EngineServices& services, const Epoch& epoch,
                   wire::InspectGroupReply& reply, std::deque<std::string>& calls) {
  const Instant now = services.now();
  const Roster& roster = epoch.roster;
  reply.epoch = roster.epoch;
  reply.age = now - epoch.formed;
  for (const Member& member : roster.members) {
    reply.members.push_back(entry_of(services, member));
    if (member.is_unheld()) add_to(reply.unheld, member.rank);
  }
  const Rounds& rounds = epoch.rounds;
  if (const Round* round = rounds.undecided()) {
    const std::string& call = calls.emplace_back(text_of(round->call));
    wire::RoundEntry& entry = reply.round.emplace(entry_of(services, rounds, *round, call));
    for (const Member& member : roster.members) {
      if (member.live() && member.next_round > round->number) add_to(entry.called, member.rank);
    }
  }
  if (const Round* round = rounds.confirming()) {
    const std::string& call = calls.emplace_back(text_of(round->call));
    reply.confirming = entry_of(services, rounds, *round, call);
    add_to(reply.confirming->called, roster.hosting_rank);
  }
  reply.receivers = epoch.streams.receivers();
  if (const auto& last = epoch.rounds.last_failure(); last.failure) {
    reply.failed = true;
    reply.failure_age = now - last.at;
    reply.failure_call = calls.emplace_back(text_of(last.call));
    reply.failure = wire::decode_error(static_cast<std::uint16_t>(last.failure.code),
                                       last.failure.body->view());
  }
}

}  // namespace

wire::GroupEntry Group::summary() const {
  wire::GroupEntry entry;
  entry.name = name_;
  entry.world_size = formed_ ? formed_->epoch.roster.world_size() : joiners_.forming().world_size();
  entry.candidates = static_cast<std::uint32_t>(joiners_.candidates().count());
  if (!formed_) {
    entry.live = joiners_.forming().seated_count();
    return entry;
  }
  entry.epoch = formed_->epoch.roster.epoch;
  entry.live = formed_->epoch.roster.live_count;
  const Rounds& rounds = formed_->epoch.rounds;
  const Round* undecided = rounds.undecided();
  if (const Round* round = undecided != nullptr ? undecided : rounds.confirming()) {
    entry.round = round->number;
    entry.round_age = state_.services.now() - round->opened;
  }
  return entry;
}

bool Group::has_waiters() const {
  if (!formed_) return true;
  const Epoch& epoch = formed_->epoch;
  if (epoch.rounds.undecided() != nullptr || epoch.rounds.confirming() != nullptr) return true;
  if (formed_->regroups.entry() || !epoch.streams.receivers().empty()) return true;
  return std::any_of(joiners_.all().begin(), joiners_.all().end(), [](const auto& each) {
    return each.second->place != Joiner::Place::seat && !each.second->waits.empty();
  });
}

std::string Group::report() const {
  wire::InspectGroupReply reply;
  reply.world_size = summary().world_size;
  std::deque<std::string> calls;  // viewed by the reply
  if (!formed_) {
    tell_of_joiners(state_.services, joiners_, reply);
  } else {
    tell_of_epoch(state_.services, formed_->epoch, reply, calls);
    reply.regroup = formed_->regroups.entry();
  }
  for (const auto& [arrival, joiner] : joiners_.all()) {
    if (joiner->place == Joiner::Place::seat || joiner->waits.empty()) continue;
    if (reply.candidates.size() == wire::list_entries_max) break;
    reply.candidates.push_back(entry_of(state_.services, *joiner));
  }
  for (wire::MemberEntry& member : reply.members) member.info = {};  // might not fit
  state_.services.effects().spend(reply.members.size() + reply.candidates.size() +
                                  reply.receivers.size());
  std::string body;
  wire::append_body(body, reply);
  return body;
}

}  // namespace muster::core
