#include "server/http/front/visitors/sessions.h"

#include <algorithm>
#include <array>

#include "server/http/front/visitors/guard.h"

namespace muster::server::http {
namespace {

std::optional<Digest> digest_of_name(std::string_view name) {
  Digest digest{};
  if (!make_digest(name, digest.data())) return {};
  return digest;
}

}  // namespace

std::optional<std::string> Sessions::begin(const Digest& token, base::Instant now) {
  std::array<unsigned char, token_random_bytes> random{};
  if (!random_(random.data(), random.size())) return {};
  std::string name = token_of(random).substr(token_prefix.size());
  const auto digest = digest_of_name(name);
  if (!digest) return {};
  make_room(now);
  sessions_[*digest] = {token, now + lifetime};
  return name;
}

const Digest* Sessions::find(std::string_view name, base::Instant now) const {
  const auto digest = digest_of_name(name);
  const auto found = digest ? sessions_.find(*digest) : sessions_.end();
  return found == sessions_.end() || found->second.until <= now ? nullptr : &found->second.token;
}

void Sessions::end(std::string_view name) {
  if (const auto digest = digest_of_name(name)) sessions_.erase(*digest);
}

/// The one that ends first goes, if none is over.
void Sessions::make_room(base::Instant now) {
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second.until <= now; });
  if (sessions_.size() < sessions_max) return;
  sessions_.erase(std::min_element(
      sessions_.begin(), sessions_.end(),
      [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

}  // namespace muster::server::http
