#include "auth/difference.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/secret/secret_bytes.h"

namespace muster::auth {
namespace {

std::set<Identity> identities_of(const Credentials& credentials) {
  std::set<Identity> identities;
  for (const Credential& each : credentials.all()) identities.insert(each.grant.identity);
  return identities;
}

Successor successor_of(const Credential& credential, const Credentials& newer) {
  const auto position = newer.find(credential.proof);
  if (!position) return {};
  const Grant& grant = newer.all()[*position].grant;
  if (grant.identity != credential.grant.identity) return {};
  const bool is_same_grant = grant == credential.grant;
  return {is_same_grant ? Successor::Kind::same : Successor::Kind::changed, *position};
}

}  // namespace

Difference difference_of(const Credentials& older, const Credentials& newer) {
  Difference difference;
  for (const Credential& each : older.all()) {
    difference.successors.push_back(successor_of(each, newer));
  }
  base::clear_vector_registers();  // keys were compared
  const std::set<Identity> before = identities_of(older);
  const std::set<Identity> now = identities_of(newer);
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(),
                      std::back_inserter(difference.identities_gone));
  return difference;
}

}  // namespace muster::auth
