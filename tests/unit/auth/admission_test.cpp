#include "auth/admission.h"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

namespace {

using muster::ErrorCode;
using muster::auth::Admission;
using muster::auth::Admitted;
using muster::auth::Asked;
using muster::auth::CertificateNames;
using muster::auth::Grant;
using muster::auth::KeyId;
using muster::auth::NamespacePatterns;
using muster::auth::Refused;
using muster::auth::Rights;
using muster::auth::UtcTime;
using muster::wire::Right;
using muster::wire::Role;
using std::chrono::seconds;

const UtcTime now{seconds(1'800'000'000)};

Grant grant_of(Rights rights) {
  Grant grant;
  grant.identity = {"team", "alice"};
  grant.namespaces = NamespacePatterns::read("train-*").value();
  grant.rights = rights;
  grant.limits.sessions = 7;
  return grant;
}

Rights admitted_rights(Rights rights, Role role) {
  const Admission admission = admit(grant_of(rights), {role, "train-1"}, now);
  const auto* const admitted = std::get_if<Admitted>(&admission);
  return admitted == nullptr ? Rights() : admitted->rights;
}

Refused refusal_of(const Grant& grant, const Asked& asked) {
  const Admission admission = admit(grant, asked, now);
  REQUIRE(std::holds_alternative<Refused>(admission));
  return std::get<Refused>(admission);
}

TEST_CASE("who is admitted has the identity and the limits of the grant") {
  const Admission admission = admit(grant_of({Right::read}), {Role::client, "train-1"}, now);
  REQUIRE(std::holds_alternative<Admitted>(admission));
  const auto& admitted = std::get<Admitted>(admission);
  CHECK(admitted.identity == muster::auth::Identity{"team", "alice"});
  CHECK(admitted.limits.sessions == 7);
  CHECK(admitted.rights == Rights{Right::read});
}

TEST_CASE("a session has a right if its grant and its role have it") {
  int pairs_count = 0;
  for (const Role role : {Role::client, Role::observer, Role::supervisor}) {
    for (unsigned mask = 1; mask < 128; ++mask) {
      Rights rights;
      for (unsigned bit = 0; bit < 7; ++bit) {
        if ((mask >> bit & 1U) != 0) rights.add(static_cast<Right>(bit));
      }
      const Rights admitted = admitted_rights(rights, role);
      for (unsigned bit = 0; bit < 7; ++bit) {
        const auto right = static_cast<Right>(bit);
        CHECK(admitted.has(right) == (rights.has(right) && muster::wire::has_right(role, right)));
        ++pairs_count;
      }
    }
  }
  CHECK(pairs_count == 3 * 127 * 7);
}

TEST_CASE("a credential holds at its last instant, and not after it") {
  Grant grant = grant_of({Right::read});
  for (const auto& [left, is_valid] :
       {std::pair(seconds(1), true), std::pair(seconds(0), true), std::pair(seconds(-1), false)}) {
    grant.not_after = now + left;
    const Admission admission = admit(grant, {Role::client, "train-1"}, now);
    CHECK(std::holds_alternative<Admitted>(admission) == is_valid);
  }
}

TEST_CASE("nobody is admitted to a namespace in which he has no right") {
  const Grant grant = grant_of({Right::admin});
  CHECK_FALSE(refusal_of(grant, {Role::client, "eval"}).logged.empty());
  CHECK_FALSE(refusal_of(grant, {Role::supervisor, ""}).logged.empty());
  CHECK_FALSE(refusal_of(grant_of({Right::join}), {Role::observer, "train-1"}).logged.empty());
  CHECK_FALSE(refusal_of(grant_of({Right::supervise}), {Role::client, "train-1"}).logged.empty());
  CHECK_FALSE(refusal_of(grant_of({Right::peer}), {Role::client, "train-1"}).logged.empty());
}

TEST_CASE("the peer is told the same for every reason, and the operator each reason") {
  Grant expired = grant_of({Right::read});
  expired.not_after = now - seconds(1);
  const std::vector<Refused> refusals = {
      refuse_unknown_key(KeyId{{1, 2, 3, 0xab, 5, 6, 7, 8}}),
      muster::auth::refuse_wrong_key({"team", "alice"}),
      muster::auth::refuse_unknown_user(1000, 100),
      refuse_unknown_certificate(CertificateNames{{"n1.x.org"}, {}, "n1"}),
      refusal_of(expired, {Role::client, "train-1"}),
      refusal_of(grant_of({Right::read}), {Role::client, "eval"}),
      refusal_of(grant_of({Right::join}), {Role::observer, "train-1"}),
  };
  for (std::size_t index = 0; index < refusals.size(); ++index) {
    const Refused& refused = refusals[index];
    CAPTURE(refused.logged);
    CHECK(refused.told.code == ErrorCode::permission_denied);
    CHECK(refused.told.detail == "not admitted");
    CHECK(refused.told.message() == refusals[0].told.message());
    for (std::size_t other = 0; other < index; ++other) {
      CHECK(refused.logged != refusals[other].logged);
    }
  }
  CHECK(refusals[0].logged.find("010203ab05060708") != std::string::npos);
  CHECK(refusals[1].logged.find("team/alice") != std::string::npos);
  CHECK(refusals[2].logged.find("uid=1000") != std::string::npos);
  CHECK(refusals[3].logged.find("n1.x.org") != std::string::npos);
  CHECK(refusals[4].logged.find("2027-01-15T07:59:59Z") != std::string::npos);
  CHECK(refusals[5].logged.find("'eval'") != std::string::npos);
  CHECK(refusals[6].logged.find("observer") != std::string::npos);
}

TEST_CASE("names that peers choose do not break the operator's log") {
  const Grant grant = grant_of({Right::read});
  const std::string logged =
      refusal_of(grant, {Role::client, "x\n\x1b[31m" + std::string(500, 'n')}).logged;
  CHECK(logged.find_first_of("\n\x1b") == std::string::npos);
  CHECK(logged.size() < 200);
  CertificateNames names;
  for (int count = 0; count < 1000; ++count) names.uris.emplace_back(1000, '\n');
  const std::string of_names = refuse_unknown_certificate(names).logged;
  CHECK(of_names.find('\n') == std::string::npos);
  CHECK(of_names.size() < 1500);
}

}  // namespace
