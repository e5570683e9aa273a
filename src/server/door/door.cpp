#include "server/door/door.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "auth/difference.h"
#include "auth/wipe.h"
#include "base/failure.h"
#include "base/secret/unshown.h"

// A version of the file is read and derived from by whoever asks for it, and takes the place of the
// older one between two turns. Whoever has begun a handshake before is looked up in the newer one
// when it is over.

namespace muster::server {
namespace {

constexpr Duration look_interval = std::chrono::seconds(1);
/// Of those without a key: so many may be kept although they have no session.
constexpr std::size_t issued_kept = 1024;

/// The clock of the calendar: the server looks at dates here and nowhere else.
auth::UtcTime utc_now() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return auth::UtcTime(std::chrono::duration_cast<std::chrono::seconds>(since_1970));
}

std::set<auth::Identity> identities_of(const auth::Credentials& credentials) {
  std::set<auth::Identity> identities;
  for (const auth::Credential& each : credentials.all()) identities.insert(each.grant.identity);
  return identities;
}

std::vector<auth::Identity> without(const std::set<auth::Identity>& all,
                                    const std::set<auth::Identity>& others) {
  std::vector<auth::Identity> left;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::back_inserter(left));
  return left;
}

/// ", added: a, b", and how many more there are.
std::string listed(const char* what, const std::vector<auth::Identity>& identities) {
  constexpr std::size_t shown_max = 16;
  std::string text;
  for (std::size_t index = 0; index < std::min(shown_max, identities.size()); ++index) {
    text += (index == 0 ? std::string("; ") + what + ": " : ", ") + to_string(identities[index]);
  }
  if (identities.size() <= shown_max) return text;
  return text + " and " + std::to_string(identities.size() - shown_max) + " more";
}

auth::KeyId id_of(const KeyShown& key) {
  auth::KeyId id;
  std::copy_n(key.id.begin(), std::min(key.id.size(), id.bytes.size()), id.bytes.begin());
  return id;
}

std::string all_of(const auth::CertificateNames& names) {
  std::string all;
  for (const std::string& name : names.dns) all += "dns:" + name + '\n';
  for (const std::string& name : names.uris) all += "uri:" + name + '\n';
  return all + "cn:" + names.common_name;
}

}  // namespace

std::string summary_of(const RollChange& change) {
  return std::to_string(change.identities_count) + " identities are known" +
         listed("added", change.added) + listed("removed", change.removed) +
         "; grants of sessions that changed: " + std::to_string(change.regrant.size()) +
         (change.certificate.empty() ? "" : "; " + change.certificate);
}

Result<std::shared_ptr<Door>> Door::open(DoorOptions options) {
  const std::shared_ptr<Door> door(new Door(std::move(options)));
  base::FileStamps stamps = door->stamps();
  Result<std::shared_ptr<const Roll>> roll =
      door->options_.file.empty() ? door->read_roll(door->options_.text) : door->read_roll_file();
  auth::wipe(door->options_.text);
  if (!roll) return std::move(roll).error();
  if (door->options_.file.empty()) door->text_roll_ = *roll;
  Result<Version> version = door->with_tls(*std::move(roll), std::move(stamps));
  if (!version) return std::move(version).error();
  door->change_to(std::move(*version));
  return door;
}

base::FileStamps Door::stamps() const {
  const net::tls::CertificateFiles& files = options_.certificates;
  return base::stamps_of({options_.file, files.certificate, files.key, files.authorities});
}

Result<Door::Version> Door::read() const {
  base::FileStamps before = stamps();
  if (before.empty()) {
    return base::failure(ErrorCode::unsupported,
                         "the credentials were given as a text: there is no file to read again");
  }
  Result<std::shared_ptr<const Roll>> roll =
      options_.file.empty() ? Result<std::shared_ptr<const Roll>>(text_roll_) : read_roll_file();
  if (!roll) return std::move(roll).error();
  return with_tls(*std::move(roll), std::move(before));
}

Result<std::shared_ptr<const Roll>> Door::read_roll_file() const {
  Result<base::SecretText> text =
      base::read_secret_file(options_.file, auth::credentials_bytes_max);
  if (!text) return std::move(text).error();
  Result<std::shared_ptr<const Roll>> roll = read_roll(text->text());
  if (roll) return roll;
  Error error = std::move(roll).error();
  error.detail = base::shown_unless_secret(options_.file) + ": " + error.detail;
  return error;
}

Result<std::shared_ptr<const Roll>> Door::read_roll(std::string_view text) const {
  return Roll::read(text, options_.server_name,
                    options_.speaks_tls ? Roll::Keys::used : Roll::Keys::unused);
}

Result<Door::Version> Door::with_tls(std::shared_ptr<const Roll> roll,
                                     base::FileStamps stamps) const {
  Version version{std::move(roll), nullptr, std::move(stamps)};
  if (!options_.speaks_tls) return version;
  const auto find = [known = known_](std::string_view id, unsigned char* secret) {
    return known->find_secret(id, secret);
  };
  Result<std::shared_ptr<const net::tls::TlsContext>> tls =
      net::tls::TlsContext::server(find, options_.certificates);
  if (!tls) return std::move(tls).error();
  version.tls = std::move(*tls);
  return version;
}

bool Door::Known::find_secret(std::string_view id, unsigned char* secret) {
  KeyNamed key;
  key.is_one = id.size() == key.id.bytes.size();
  if (key.is_one) std::copy(id.begin(), id.end(), key.id.bytes.begin());
  key.position = roll->find_secret(id, secret);
  named = key;
  return key.position.has_value();
}

std::string Door::why_refused(const KeyNamed& named) const {
  if (!named.is_one) return "it has named a key by no id of Muster's";
  if (!named.position) return auth::refuse_unknown_key(named.id).logged;
  const auth::Credential& credential = known_->roll->credentials().all()[*named.position];
  return auth::refuse_wrong_key(credential.grant.identity).logged;
}

// Who comes in.

std::variant<Visitor, auth::Refused> Door::admit(const Proved& proved, const auth::Asked& asked) {
  std::variant<Grant, auth::Refused> found = find(proved);
  if (auto* const refused = std::get_if<auth::Refused>(&found)) return std::move(*refused);
  Grant& grant = std::get<Grant>(found);
  auth::Admission admission = auth::admit(*grant, asked, utc_now());
  if (auto* const refused = std::get_if<auth::Refused>(&admission)) return std::move(*refused);
  Visitor visitor;
  visitor.unit = {net::UnitId::Kind::identity, number_of(grant->identity)};
  visitor.unit_name = "identity " + to_string(grant->identity);
  if (const auto* const key = std::get_if<KeyShown>(&proved)) visitor.key = id_of(*key).number();
  visitor.grant = std::move(grant);
  return visitor;
}

std::variant<Door::Grant, auth::Refused> Door::find(const Proved& proved) {
  if (const auto* const key = std::get_if<KeyShown>(&proved)) {
    if (const auto position = known_->roll->find_key(key->id)) return grants_[*position];
    return auth::refuse_unknown_key(id_of(*key));
  }
  const auth::Credential* const credential = look_up(proved);
  if (const auto* const user = std::get_if<net::SystemUser>(&proved)) {
    if (credential == nullptr) return auth::refuse_unknown_user(user->uid, user->gid);
    return issue(std::pair(user->uid, user->gid), proved, credential->grant);
  }
  const auto& names = std::get<auth::CertificateNames>(proved);
  if (credential == nullptr) return auth::refuse_unknown_certificate(names);
  return issue(all_of(names), proved, credential->grant);
}

/// Of a peer without a key.
const auth::Credential* Door::look_up(const Proved& proved) const {
  const auth::Credentials& credentials = known_->roll->credentials();
  if (const auto* const user = std::get_if<net::SystemUser>(&proved)) {
    return credentials.find_unix(user->uid, user->gid);
  }
  const auto* const names = std::get_if<auth::CertificateNames>(&proved);
  return names != nullptr ? credentials.find_certificate(*names) : nullptr;
}

Door::Grant Door::issue(Holder holder, const Proved& proved, const auth::Grant& granted) {
  if (issued_.size() >= issued_max_) drop_unused();
  Issued& issued = issued_[std::move(holder)];
  if (issued.grant == nullptr) {
    issued = {proved, std::make_shared<const auth::Grant>(granted)};
  }
  return issued.grant;
}

void Door::drop_unused() {
  std::erase_if(issued_, [](const auto& each) { return each.second.grant.use_count() == 1; });
  issued_max_ = issued_.size() * 2 + issued_kept;
}

std::uint64_t Door::number_of(const auth::Identity& identity) {
  std::uint64_t& number = numbers_[identity];
  if (number == 0) number = ++last_number_;
  return number;
}

// Another version.

RollChange Door::change_to(Version version) {
  RollChange change;
  const std::shared_ptr<const Roll> older = std::exchange(known_->roll, version.roll);
  const auto before = older ? identities_of(older->credentials()) : std::set<auth::Identity>();
  const auto now = identities_of(version.roll->credentials());
  change.added = without(now, before);
  change.removed = without(before, now);
  change.identities_count = now.size();
  for (const auth::Identity& identity : change.removed) numbers_.erase(identity);
  std::vector<Grant> grants;
  for (const auth::Credential& each : version.roll->credentials().all()) {
    grants.push_back(std::make_shared<const auth::Grant>(each.grant));
  }
  grants.swap(grants_);
  if (older) {
    const auth::Difference difference =
        auth::difference_of(older->credentials(), version.roll->credentials());
    for (std::size_t position = 0; position < grants.size(); ++position) {
      const auth::Successor& successor = difference.successors[position];
      if (successor.kind == auth::Successor::Kind::same) {
        grants_[successor.position] = grants[position];
      } else if (grants[position].use_count() > 1) {
        const bool is_gone = successor.kind == auth::Successor::Kind::gone;
        change.regrant.emplace_back(grants[position],
                                    is_gone ? nullptr : grants_[successor.position]);
      }
    }
  }
  take_issued(change);
  tls_ = std::move(version.tls);
  stamps_ = seen_stamps_ = std::move(version.stamps);
  std::vector<Validity> validities = this->validities();
  if (!validities.empty() && validities.front().of == Validity::Of::server) {
    change.certificate =
        validities.front().name + " is valid until " + to_string(validities.front().not_after);
  }
  expiry_.replace(std::move(validities));
  return change;
}

/// Those without a key are looked up again, since a line of their own may have come.
void Door::take_issued(RollChange& change) {
  drop_unused();
  for (auto each = issued_.begin(); each != issued_.end();) {
    Issued& issued = each->second;
    const auth::Credential* const credential = look_up(issued.proved);
    const bool stays =
        credential != nullptr && credential->grant.identity == issued.grant->identity;
    const Grant newer = stays ? std::make_shared<const auth::Grant>(credential->grant) : nullptr;
    const bool is_same = stays && *newer == *issued.grant;
    if (!is_same) change.regrant.emplace_back(std::exchange(issued.grant, newer), newer);
    each = stays ? std::next(each) : issued_.erase(each);
  }
}

/// Files that are written in place are not read before they are complete.
bool Door::has_changed(base::Instant now) {
  if (now - looked_ < look_interval) return false;
  looked_ = now;
  base::FileStamps seen = stamps();
  const bool is_settled = seen == std::exchange(seen_stamps_, seen);
  const bool are_there =
      std::all_of(seen.begin(), seen.end(), [](const auto& each) { return each.has_value(); });
  if (!are_there || !is_settled || seen == stamps_) return false;
  stamps_ = std::move(seen);  // what is wrong with them is told once
  return true;
}

// What expires.

std::vector<Validity> Door::validities() const {
  using net::tls::CertificateOf;
  std::vector<Validity> all;
  const auto time_of = [](std::int64_t seconds) {
    return auth::UtcTime(std::chrono::seconds(seconds));
  };
  const net::tls::CertificateFiles& files = options_.certificates;
  for (const auto& each : tls_ ? tls_->certificates() : decltype(tls_->certificates())()) {
    const bool is_authority = each.of == CertificateOf::authority;
    const char* const what = is_authority ? "the certificate of the client authority "
                             : each.of == CertificateOf::own
                                 ? "the server's certificate "
                                 : "the intermediate certificate of the server ";
    const std::string& file = is_authority ? files.authorities : files.certificate;
    all.push_back({is_authority ? Validity::Of::authority : Validity::Of::server,
                   what + each.name + " in " + file, time_of(each.not_before_s),
                   time_of(each.not_after_s)});
  }
  for (const auth::Credential& each : known_->roll->credentials().all()) {
    if (!each.grant.not_after) continue;
    const std::string place = options_.file.empty() ? "the credentials" : options_.file;
    all.push_back({Validity::Of::credential,
                   "the credential of " + to_string(each.grant.identity) + " in " + place +
                       ", line " + std::to_string(each.line),
                   {},
                   *each.grant.not_after});
  }
  return all;
}

ExpiryWarnings::Lines Door::expiry_warnings() { return expiry_.take(utc_now()); }

std::optional<auth::UtcTime> Door::expiry(Validity::Of of) const {
  return expiry_.expiry(of, utc_now());
}

}  // namespace muster::server
