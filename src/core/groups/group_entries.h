#pragma once

#include <cstdint>
#include <string_view>

#include "core/groups/joiners.h"
#include "core/groups/roster.h"
#include "core/groups/rounds/rounds.h"
#include "wire/reply.h"

// The parts of a group as lists and operators see them.

namespace muster::core {

/// Nothing was heard of it for some heartbeats.
bool is_silent(const EngineServices& services, const Session& session);

wire::MemberEntry entry_of(const EngineServices& services, std::uint32_t rank,
                           const Session& session);
wire::MemberEntry entry_of(const EngineServices& services, const Member& member);
/// `joiner` waits.
wire::CandidateEntry entry_of(const EngineServices& services, const Joiner& joiner);
/// The entry views `call`.
wire::RoundEntry entry_of(const EngineServices& services, const Rounds& rounds, const Round& round,
                          std::string_view call);

}  // namespace muster::core
