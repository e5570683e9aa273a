#include "auth/credentials.h"

#include <algorithm>
#include <compare>
#include <string>

#include "auth/credentials_reader.h"
#include "base/failure.h"

// Credentials stay in the order of their lines; a list of positions, sorted by proofs, finds them.
// Keys are found and ordered as other bytes are: only whoever reads the file could measure that.
// What a peer sends is never compared here.

namespace muster::auth {
namespace {

/// What proofs are ordered by.
struct ProofOrder {
  int kind = 0;
  std::uint32_t number = 0;
  std::string_view text;

  friend std::strong_ordering operator<=>(const ProofOrder&, const ProofOrder&) = default;
  friend bool operator==(const ProofOrder&, const ProofOrder&) = default;
};

ProofOrder order_of(const Proof& proof) {
  if (const auto* const key = std::get_if<Key>(&proof)) return {0, 0, key->bytes()};
  if (const auto* const user = std::get_if<UnixUser>(&proof)) {
    return {user->kind == UnixUser::Kind::user ? 1 : 2, user->number, {}};
  }
  const auto& pattern = std::get<CertificatePattern>(proof);
  const int kind = 3 + static_cast<int>(pattern.kind);
  return {kind, pattern.has_any_label ? 1U : 0U, pattern.name};
}

Error too_large(std::string what, std::size_t limit, std::size_t actual) {
  Error error = base::failure(ErrorCode::too_large, std::move(what));
  error.limit = limit;
  error.actual = actual;
  return error;
}

}  // namespace

bool is_same(const Proof& a, const Proof& b) { return order_of(a) == order_of(b); }

Result<Credentials> Credentials::read(std::string_view text) {
  if (text.size() > credentials_bytes_max) {
    return too_large("credentials have at most 1 MiB", credentials_bytes_max, text.size());
  }
  const auto ends_count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t lines_count = ends_count + (text.empty() || text.back() == '\n' ? 0 : 1);
  if (lines_count > credentials_lines_max) {
    return too_large("credentials have at most 10,000 lines", credentials_lines_max, lines_count);
  }
  Reading reading = read_with_problems(text);
  if (!reading.problems.empty()) return error_of(std::move(reading.problems));
  return std::move(reading.credentials);
}

std::string Credentials::only_tenant() const {
  if (all_.empty()) return {};
  const std::string& first = all_.front().grant.identity.tenant;
  const bool is_only = std::all_of(all_.begin(), all_.end(), [&first](const Credential& each) {
    return each.grant.identity.tenant == first;
  });
  return is_only ? first : std::string();
}

Credentials::Reading Credentials::read_with_problems(std::string_view text) {
  Reading reading;
  CredentialsReader reader;
  reading.credentials.all_ = reader.read(text);
  std::vector<Credential>& all = reading.credentials.all_;
  std::vector<std::size_t>& by_proof = reading.credentials.by_proof_;
  for (std::size_t position = 0; position < all.size(); ++position) by_proof.push_back(position);
  std::stable_sort(by_proof.begin(), by_proof.end(), [&all](std::size_t a, std::size_t b) {
    return order_of(all[a].proof) < order_of(all[b].proof);
  });
  reading.problems = reader.problems();
  for (std::size_t index = 1; index < by_proof.size(); ++index) {
    const Credential& before = all[by_proof[index - 1]];
    const Credential& each = all[by_proof[index]];
    if (!is_same(before.proof, each.proof)) continue;
    reading.problems.push_back({each.line, Fault::same_proof, before.line});
  }
  return reading;
}

std::optional<std::size_t> Credentials::find(const Proof& proof) const {
  const ProofOrder wanted = order_of(proof);
  const auto found = std::lower_bound(by_proof_.begin(), by_proof_.end(), wanted,
                                      [this](std::size_t position, const ProofOrder& order) {
                                        return order_of(all_[position].proof) < order;
                                      });
  if (found == by_proof_.end() || order_of(all_[*found].proof) != wanted) return {};
  return *found;
}

const Credential* Credentials::find_unix(std::uint32_t uid, std::uint32_t gid) const {
  if (const auto* const found = at(find(UnixUser{UnixUser::Kind::user, uid}))) return found;
  return at(find(UnixUser{UnixUser::Kind::group, gid}));
}

const Credential* Credentials::find_certificate(const CertificateNames& names) const {
  for (CertificatePattern& pattern : patterns_of(names)) {
    if (const auto* const found = at(find(std::move(pattern)))) return found;
  }
  return nullptr;
}

}  // namespace muster::auth
