#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "auth/credentials.h"

namespace muster::auth {

/// Base64 of a key of 32 bytes, another one for each number.
inline std::string key_text(std::uint8_t number) {
  std::string bytes;
  for (unsigned index = 0; index < Key::bytes_min; ++index) {
    bytes += static_cast<char>(number + index * 7);
  }
  return Key::of(bytes).value().base64();
}

inline std::string options_text(const Grant& grant) {
  std::string text;
  const auto append = [&text](std::string_view name, std::uint64_t number) {
    if (number > 0) text += " " + std::string(name) + "=" + std::to_string(number);
  };
  if (grant.not_after) text += " not-after=" + to_string(*grant.not_after);
  append("connections", grant.limits.connections);
  append("sessions", grant.limits.sessions);
  append("groups", grant.limits.groups);
  append("memory", grant.limits.memory_bytes);
  append("requests", grant.limits.requests_per_second);
  return text;
}

/// The line of a credentials file, without its end.
inline std::string line_of(const Credential& credential) {
  const Grant& grant = credential.grant;
  const std::string identity = to_string(grant.identity);
  const std::string may = " " + to_string(grant.namespaces) + " " + to_string(grant.rights);
  if (const auto* const key = std::get_if<Key>(&credential.proof)) {
    return identity + " " + key->base64() + may + options_text(grant);
  }
  std::string proof;
  if (const auto* const user = std::get_if<UnixUser>(&credential.proof)) {
    proof = user->kind == UnixUser::Kind::user ? "unix:uid=" : "unix:gid=";
    proof += std::to_string(user->number);
  } else {
    proof = "certificate:" + to_string(std::get<CertificatePattern>(credential.proof));
  }
  return proof + may + " as=" + identity + options_text(grant);
}

/// A file that is read as these credentials, line by line.
inline std::string text_of(const Credentials& credentials) {
  std::string text;
  for (const Credential& each : credentials.all()) text += line_of(each) + "\n";
  return text;
}

}  // namespace muster::auth
