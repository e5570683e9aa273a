#include "core/groups/group_entries.h"

#include <utility>

namespace muster::core {

bool is_silent(const EngineServices& services, const Session& session) {
  constexpr int heartbeats = 3;
  return services.silence(session) >= heartbeats * services.options().limits.heartbeat;
}

wire::MemberEntry entry_of(const EngineServices& services, std::uint32_t rank,
                           const Session& session) {
  wire::MemberEntry entry;
  entry.rank = rank;
  entry.process = session.process;
  entry.silence = services.silence(session);
  if (session.connection == 0) {
    entry.state = wire::MemberState::away;
  } else if (is_silent(services, session)) {
    entry.state = wire::MemberState::silent;
  }
  return entry;
}

wire::MemberEntry entry_of(const EngineServices& services, const Member& member) {
  if (member.live()) {
    wire::MemberEntry entry = entry_of(services, member.rank, *member.session);
    entry.info = member.info->view();
    return entry;
  }
  const bool left = member.standing == Standing::left;
  return {member.rank, left ? wire::MemberState::left : wire::MemberState::lost, member.process,
          member.silence_at_end, member.info->view()};
}

wire::CandidateEntry entry_of(const EngineServices& services, const Joiner& joiner) {
  const Instant now = services.now();
  wire::CandidateEntry entry;
  entry.member = entry_of(services, joiner.rank, joiner.session);
  entry.world_size = joiner.world_size;
  entry.standby = joiner.standby;
  entry.waits_for_holder = joiner.place == Joiner::Place::claimant;
  entry.age = now - joiner.waits.first().parked.received;
  entry.left = joiner.waits.last().parked.deadline() - now;
  return entry;
}

wire::RoundEntry entry_of(const EngineServices& services, const Rounds& rounds, const Round& round,
                          std::string_view call) {
  Awaited awaited = rounds.awaited(round);
  wire::RoundEntry entry;
  entry.number = round.number;
  entry.call = call;
  entry.age = services.now() - round.opened;
  entry.missing = std::move(awaited.ranks);
  entry.older_rounds = awaited.older_rounds;
  return entry;
}

}  // namespace muster::core
