#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "auth/credentials.h"
#include "auth/key_ids.h"
#include "muster/error.h"

namespace muster::auth {

/// What a peer asks for with its hello.
struct Asked {
  wire::Role role = wire::Role::client;
  std::string_view name_space;
};

/// A peer that may begin a session.
struct Admitted {
  Identity identity;
  Rights rights;  ///< of the session: what its role has and its credential grants
  Limits limits;
};

/// A peer that may not.
struct Refused {
  Error told;          ///< to the peer: the same for every reason
  std::string logged;  ///< for the operator alone: who it was and which step has failed
};

/// What every peer is told that may not.
Error not_admitted();

using Admission = std::variant<Admitted, Refused>;

/// Decides about a peer that has proved to be who the grant is for. It does not look at what there
/// is in the server, so nobody learns by it whether a namespace is there.
Admission admit(const Grant& grant, const Asked& asked, UtcTime now);

/// The peer has named a key that nobody has.
Refused refuse_unknown_key(const KeyId& id);
/// The peer has named a key of that identity, and has not proved that it has it.
Refused refuse_wrong_key(const Identity& identity);
/// No credential is for that user and group, at a Unix socket.
Refused refuse_unknown_user(std::uint32_t uid, std::uint32_t gid);
/// No credential is for a certificate with these names.
Refused refuse_unknown_certificate(const CertificateNames& names);

}  // namespace muster::auth
