#include "auth/admission.h"

#include <utility>

#include "base/failure.h"
#include "base/text.h"

// Every refusal is made by `refused`, so that none can tell a peer more than another one.

namespace muster::auth {
namespace {

Refused refused(std::string logged) { return {not_admitted(), std::move(logged)}; }

std::string_view name_of_role(wire::Role role) {
  switch (role) {
    case wire::Role::client: return "client";
    case wire::Role::observer: return "observer";
    case wire::Role::supervisor: return "supervisor";
  }
  return "unknown role";
}

/// A certificate may have very many names.
std::string shown_names(const CertificateNames& names) {
  constexpr std::size_t shown_names_max = 4;
  std::string text;
  std::size_t count = 0;
  const auto append = [&](std::string_view name) {
    if (++count > shown_names_max) return;
    if (count > 1) text += ", ";
    text += base::quoted_text(name);
  };
  for (const std::string& name : names.dns) append(name);
  for (const std::string& name : names.uris) append(name);
  if (!names.common_name.empty()) append("CN=" + names.common_name);
  if (count == 0) return "without names";
  if (count > shown_names_max) text += " and " + std::to_string(count - shown_names_max) + " more";
  return text;
}

}  // namespace

Error not_admitted() { return base::failure(ErrorCode::permission_denied, "not admitted"); }

Admission admit(const Grant& grant, const Asked& asked, UtcTime now) {
  const std::string who = to_string(grant.identity);
  if (grant.not_after && now > *grant.not_after) {
    return refused(who + ": its credential was valid until " + to_string(*grant.not_after));
  }
  if (!grant.namespaces.allows(asked.name_space)) {
    return refused(who + ": it has no right in the namespace " +
                   base::quoted_text(asked.name_space));
  }
  const Rights rights = grant.rights & rights_of(asked.role);
  if (rights.is_empty()) {
    return refused(who + ": it has no right of the role " + std::string(name_of_role(asked.role)));
  }
  return Admitted{grant.identity, rights, grant.limits};
}

Refused refuse_unknown_key(const KeyId& id) {
  return refused("nobody has the key " + base::hex_digits(id.number()));
}

Refused refuse_wrong_key(const Identity& identity) {
  return refused(to_string(identity) + ": it has not proved that it has the key that it named");
}

Refused refuse_unknown_user(std::uint32_t uid, std::uint32_t gid) {
  return refused("no line is for unix:uid=" + std::to_string(uid) +
                 " or unix:gid=" + std::to_string(gid));
}

Refused refuse_unknown_certificate(const CertificateNames& names) {
  return refused("no line is for a certificate of " + shown_names(names));
}

}  // namespace muster::auth
