#include <algorithm>
#include <string>
#include <utility>

#include "core/session/failure.h"
#include "core/sessions.h"

// Whether there is room for one more session (docs/semantics.md, R9). Units share the places of
// sessions_max and their reserve; clients of TCPStore have half of these. Operators have places of
// their own, which they take only when they find no other one.

namespace muster::core {
namespace {

/// Whether nothing is lost with it.
bool is_bare(const Session& session) {
  if (session.is_guest) return false;  // its client could not begin another one
  const bool has_keys = session.keys.bound != nullptr && session.keys.bound->count != 0;
  return !has_keys && session.members.empty() && session.requests.parked.empty() &&
         session.requests.unacknowledged.size() == 0;
}

/// So many sessions of a unit are looked at for one that is bare.
constexpr int looked_at_max = 32;

}  // namespace

/// Why `unit` may have no more sessions, whatever others have.
std::optional<Error> Sessions::refusal_of_identity(const Unit& unit) {
  const std::uint32_t sessions_max = unit.limits.sessions;
  if (sessions_max == 0 || unit.sessions_count < sessions_max) return std::nullopt;
  return full(services_.counted().tallies, Limit::identity_sessions,
              unit.name + " has the sessions that it may have", unit.sessions_count, sessions_max);
}

/// The limit that leaves no room for one more session of `unit`. Nothing: there is room.
std::optional<Limit> Sessions::limit_reached(Unit& unit, bool is_guest) {
  const Quota& memory = services_.memory().all;
  if (memory.used_reserve_bytes() > memory.reserve_bytes() / 2 && !unit.is_below_memory_share()) {
    return Limit::sessions_memory;
  }
  if ((is_guest && !has_place_of_guests(unit)) || !has_place(unit)) return Limit::sessions;
  return std::nullopt;
}

Error Sessions::why_full(Limit limit, bool is_guest) {
  Tallies& tallies = services_.counted().tallies;
  if (limit == Limit::sessions_memory) {
    const Quota& memory = services_.memory().all;
    return full(tallies, limit,
                "memory is short: half of the reserve above memory_bytes_max is in use, and the "
                "rest is for sessions that are there already",
                memory.used_bytes(), memory.limit_bytes());
  }
  const std::uint64_t guests_max = limit_of_guests().places_max;
  if (is_guest && guests_count_ >= guests_max) {
    return full(tallies, limit,
                "clients of TCPStore have their half of sessions_max; raise connections-max",
                guests_count_, guests_max);
  }
  return full(tallies, limit, "the server is full: it has reached its sessions_max", taken_count(),
              services_.options().sessions_max);
}

/// Clients of TCPStore, at all ports together, have half of the places.
SharedLimit Sessions::limit_of_guests() const {
  return {std::max(services_.options().sessions_max / 2, std::uint32_t{1})};
}

bool Sessions::has_place_of_guests(const Unit& unit) const {
  const std::size_t units_count = name_spaces_.units().size();
  return limit_of_guests().has_place(guests_count_, unit.sessions_count, units_count);
}

/// Whether there is a place for one more session of `unit`, perhaps that of a session which ends
/// for it. When the limit was lowered below what there is, none ends.
bool Sessions::has_place(Unit& unit) {
  const SharedLimit limit{services_.options().sessions_max};
  const std::size_t units_count = name_spaces_.units().size();
  if (limit.has_place(taken_count(), unit.sessions_count, units_count)) return true;
  return taken_count() <= limit.with_reserve() && make_room(unit);
}

bool Sessions::has_place_of_operators(const Session& session) const {
  return std::find(operators_.begin(), operators_.end(), &session) != operators_.end();
}

/// When all places of operators are taken, the one that has asked for nothing for the longest time
/// ends. It held nothing.
void Sessions::make_room_for_operator() {
  const std::size_t places = services_.options().connections.operators_max;
  if (operators_.empty() || operators_.size() < places) return;
  end(*operators_.front(),
      failure(ErrorCode::resource_exhausted,
              "the server is full (sessions_max), and of the sessions in places of operators this "
              "one has asked for nothing for the longest time; another operator has its place"),
      LossCause::closed);
}

/// Ends a session that holds nothing: of the unit that has the most or, when `unit` has its share
/// itself, one of its own that is not connected. False: there is none.
bool Sessions::make_room(Unit& unit) {
  const std::size_t share = services_.options().sessions_max / name_spaces_.units().size();
  const bool has_share = unit.sessions_count >= share;
  Unit& loser = has_share ? unit : name_spaces_.units().fullest();
  for (int count = 0; count < looked_at_max && !loser.sessions.empty(); ++count) {
    Session& session = loser.sessions.first();
    const bool is_in_reach = !has_share || session.connection == 0;
    if (is_in_reach && is_bare(session) && !has_place_of_operators(session)) {
      Error why = failure(ErrorCode::resource_exhausted,
                          "the server is full (sessions_max), and this session of " + loser.name +
                              ", which has the most, held nothing");
      end(session, std::move(why), LossCause::closed);
      return true;
    }
    loser.sessions.append(session.of_unit);
  }
  return false;
}

}  // namespace muster::core
