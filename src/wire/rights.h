#pragma once

#include <cstdint>

// Who may ask for what. A session has the rights of the role that its client asks for in the hello.

namespace muster::wire {

enum class Role : std::uint8_t {
  client = 0,
  observer = 1,    ///< all but to take part in groups
  supervisor = 2,  ///< all of a client's, and to end what others have
};
inline constexpr Role last_role = Role::supervisor;

/// What an operation needs. Each needs one.
enum class Right : std::uint8_t {
  read,       ///< what keys hold
  write,      ///< keys
  join,       ///< groups, and all that their members do
  observe,    ///< the server, its sessions and its groups
  supervise,  ///< to end what others have: processes, sessions, namespaces
  admin,      ///< what belongs to other tenants, too, and to change the server itself
  peer,       ///< to be a server beside this one; no operation yet
  any,        ///< what everybody may who has a session; no credential names it
};

constexpr bool has_right(Role role, Right right) {
  switch (right) {
    case Right::read:
    case Right::write:
    case Right::observe:
    case Right::any: return true;
    case Right::join: return role != Role::observer;
    case Right::supervise:
    case Right::admin: return role == Role::supervisor;
    case Right::peer: return false;
  }
  return false;
}

}  // namespace muster::wire
