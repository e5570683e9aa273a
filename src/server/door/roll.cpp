#include "server/door/roll.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "auth/derivation.h"

namespace muster::server {

using net::tls::derive;
using net::tls::Secret;

Result<std::shared_ptr<const Roll>> Roll::read(std::string_view text, std::string_view server_name,
                                               Keys keys) {
  Result<auth::Credentials> credentials = auth::Credentials::read(text);
  if (!credentials) return std::move(credentials).error();
  const std::shared_ptr<Roll> roll(new Roll);
  roll->credentials_ = std::move(*credentials);
  if (keys == Keys::used) {
    if (auto failed = roll->derive_keys(server_name)) return *std::move(failed);
  }
  return std::shared_ptr<const Roll>(roll);
}

std::optional<Error> Roll::derive_keys(std::string_view server_name) {
  Result<const net::tls::Table*> table = net::tls::table();
  if (!table) return std::move(table).error();
  std::optional<Error> failed;
  const auto derived = [&failed](const auth::Key& key, const std::string& info) {
    Result<Secret> secret = derive(key.bytes(), info);
    if (!secret) failed = std::move(secret).error();
    return secret ? std::move(*secret) : Secret();
  };
  const std::string info_of_id = auth::info_of_id(server_name);
  Result<auth::KeyIds> ids = auth::KeyIds::of(credentials_, [&](const auth::Key& key) {
    const Secret secret = derived(key, info_of_id);
    auth::KeyId id;
    std::memcpy(id.bytes.data(), secret.data(), id.bytes.size());
    return id;
  });
  if (failed) return failed;
  if (!ids) return std::move(ids).error();
  ids_ = std::move(*ids);
  const std::string info_of_secret = auth::info_of_secret(server_name);
  for (const auth::Credential& each : credentials_.all()) {
    const auto* const key = std::get_if<auth::Key>(&each.proof);
    secrets_.push_back(key != nullptr ? derived(*key, info_of_secret) : Secret());
  }
  return failed;
}

std::optional<std::size_t> Roll::find_key(std::string_view id) const {
  auth::KeyId wanted;
  if (id.size() != wanted.bytes.size()) return std::nullopt;
  std::memcpy(wanted.bytes.data(), id.data(), id.size());
  return ids_.find(wanted);
}

std::optional<std::size_t> Roll::find_secret(std::string_view id, unsigned char* secret) const {
  auth::KeyId wanted;
  if (id.size() != wanted.bytes.size()) return std::nullopt;
  std::memcpy(wanted.bytes.data(), id.data(), id.size());
  const std::optional<auth::KeyIds::Near> near = ids_.find_near(wanted);
  if (!near) return std::nullopt;
  const unsigned char* const found = secrets_[near->position].data();
  const auto kept = static_cast<unsigned char>(near->has_id ? 0x00 : 0xff);
  for (std::size_t index = 0; index < net::tls::secret_bytes; ++index) {
    const unsigned differs = secret[index] ^ found[index];
    secret[index] = static_cast<unsigned char>(found[index] ^ (differs & kept));
  }
  if (!near->has_id) return std::nullopt;
  return near->position;
}

std::size_t Roll::identities_count() const {
  std::set<auth::Identity> identities;
  for (const auth::Credential& each : credentials_.all()) identities.insert(each.grant.identity);
  return identities.size();
}

}  // namespace muster::server
