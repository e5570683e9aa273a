#include "auth/credentials_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "auth/fields.h"
#include "base/secret/unshown.h"

// A line is cut into words; the first one says of what kind it is. All faults of a line are told,
// and a line with a fault is no credential. When all lines are read, those of each identity are
// compared. Words are views into the text, so nothing here has a copy of a key but its `Key`.

namespace muster::auth {
namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr std::string_view certificate_prefix = "certificate:";

constexpr std::array<std::pair<std::string_view, std::uint32_t Limits::*>, 4> counted_limits = {{
    {"connections", &Limits::connections},
    {"sessions", &Limits::sessions},
    {"groups", &Limits::groups},
    {"requests", &Limits::requests_per_second},
}};

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code < 0x20 || code == 0x7f;
  });
}

/// Without what stands behind a `#`.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (Fields fields(line, ' '); const auto field = fields.next();) {
    if (field->starts_with('#')) break;
    if (!field->empty()) words.push_back(*field);
  }
  return words;
}

/// A decimal number, and what is behind it.
template <class Number>
std::optional<std::pair<Number, std::string_view>> first_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc()) return {};
  return std::pair(number, text.substr(static_cast<std::size_t>(rest - text.data())));
}

std::optional<std::uint32_t> read_count(std::string_view text) {
  const auto number = first_number<std::uint32_t>(text);
  if (!number || !number->second.empty()) return {};
  return number->first;
}

std::optional<std::uint64_t> read_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 4> units = {
      {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  const auto number = first_number<std::uint64_t>(text);
  if (!number) return {};
  for (const auto& [unit, shift] : units) {
    const bool fits = number->first <= UINT64_MAX >> shift;
    if (number->second == unit && fits) return number->first << shift;
  }
  return {};
}

/// Reads "uid=N" and "gid=N".
std::optional<UnixUser> read_unix_user(std::string_view text) {
  constexpr std::uint32_t nobody = UINT32_MAX;  // of the system's calls, "as it was"
  const bool is_user = text.starts_with("uid=");
  if (!is_user && !text.starts_with("gid=")) return {};
  const auto number = read_count(text.substr(4));
  if (!number || *number == nobody) return {};
  return UnixUser{is_user ? UnixUser::Kind::user : UnixUser::Kind::group, *number};
}

}  // namespace

std::vector<Credential> CredentialsReader::read(std::string_view text) {
  for (Fields lines(text, '\n'); const auto line = lines.next();) {
    ++line_;
    read_line(*line);
  }
  check_identities();
  return std::move(credentials_);
}

void CredentialsReader::read_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > credentials_line_bytes_max) return complain(Fault::line_too_long);
  if (has_control_character(line)) return complain(Fault::control_character);
  const Words words = words_of(line);
  if (words.empty()) return;
  const bool is_key =
      !words[0].starts_with(unix_prefix) && !words[0].starts_with(certificate_prefix);
  const std::size_t fixed_count = is_key ? 4 : 3;
  if (words.size() < fixed_count) return complain(Fault::fields_missing);
  const std::size_t problems_before = problems_.size();
  Credential credential;
  credential.line = line_;
  is_key ? read_key(words, credential) : read_peer(words[0], credential);
  read_grant(words[fixed_count - 2], words[fixed_count - 1], credential);
  const bool has_as = read_options(words, fixed_count, credential);
  if (is_key && has_as) complain(Fault::as_of_key);
  if (!is_key && !has_as) complain(Fault::as_missing);
  if (problems_.size() == problems_before) credentials_.push_back(std::move(credential));
}

void CredentialsReader::read_key(const Words& words, Credential& credential) {
  if (base::looks_secret(words[0])) {
    complain(Fault::secret_identity);
  } else if (auto identity = read_identity(words[0])) {
    credential.grant.identity = std::move(*identity);
  } else {
    complain(Fault::bad_identity);
  }
  if (auto key = Key::read(words[1])) {
    credential.proof = std::move(*key);
  } else {
    complain(Fault::bad_key);
  }
}

void CredentialsReader::read_peer(std::string_view word, Credential& credential) {
  if (word.starts_with(unix_prefix)) {
    const auto user = read_unix_user(word.substr(unix_prefix.size()));
    if (!user) return complain(Fault::bad_unix_user);
    credential.proof = *user;
    return;
  }
  auto pattern = read_certificate_pattern(word.substr(certificate_prefix.size()));
  if (!pattern) return complain(Fault::bad_certificate);
  credential.proof = std::move(*pattern);
}

void CredentialsReader::read_grant(std::string_view namespaces, std::string_view rights,
                                   Credential& credential) {
  if (auto patterns = NamespacePatterns::read(namespaces)) {
    credential.grant.namespaces = std::move(*patterns);
  } else {
    complain(Fault::bad_namespaces);
  }
  if (const auto read = read_rights(rights)) {
    credential.grant.rights = *read;
  } else {
    complain(Fault::bad_rights);
  }
}

bool CredentialsReader::read_options(const Words& words, std::size_t count,
                                     Credential& credential) {
  std::set<std::string_view> seen;
  for (std::size_t index = count; index < words.size(); ++index) {
    const std::size_t sign = words[index].find('=');
    if (sign == std::string_view::npos) {
      complain(Fault::unknown_field);
      continue;
    }
    const std::string_view name = words[index].substr(0, sign);
    if (!seen.insert(name).second) {
      complain(Fault::repeated_field);
      continue;
    }
    read_option(name, words[index].substr(sign + 1), credential);
  }
  return seen.contains("as");
}

void CredentialsReader::read_option(std::string_view name, std::string_view value,
                                    Credential& credential) {
  Grant& grant = credential.grant;
  if (name == "as") return read_as(value, credential);
  if (name == "not-after") {
    grant.not_after = read_utc_time(value);
    if (!grant.not_after) complain(Fault::bad_not_after);
    return;
  }
  if (name == "memory") {
    grant.limits.memory_bytes = read_size(value).value_or(0);
    if (grant.limits.memory_bytes == 0) complain(Fault::bad_memory);
    return;
  }
  for (const auto& [known, limit] : counted_limits) {
    if (name != known) continue;
    grant.limits.*limit = read_count(value).value_or(0);
    if (grant.limits.*limit == 0) complain(Fault::bad_count);
    return;
  }
  complain(Fault::unknown_field);
}

void CredentialsReader::read_as(std::string_view value, Credential& credential) {
  if (base::looks_secret(value)) return complain(Fault::secret_identity);
  auto identity = read_identity(value);
  if (!identity) return complain(Fault::bad_as);
  credential.grant.identity = std::move(*identity);
}

void CredentialsReader::check_identities() {
  struct Known {
    const Credential* first = nullptr;
    const Credential* first_key = nullptr;
    std::size_t keys_count = 0;
  };
  std::map<Identity, Known> all_known;
  for (const Credential& each : credentials_) {
    Known& known = all_known[each.grant.identity];
    if (known.first == nullptr) known.first = &each;
    if (each.grant.limits != known.first->grant.limits) {
      problems_.push_back({each.line, Fault::limits_differ, known.first->line});
    }
    if (!std::holds_alternative<Key>(each.proof)) continue;
    if (known.first_key == nullptr) known.first_key = &each;
    ++known.keys_count;
    if (each.grant != known.first_key->grant) {
      problems_.push_back({each.line, Fault::differs, known.first_key->line});
    }
    if (known.keys_count > keys_of_identity_max) {
      problems_.push_back({each.line, Fault::third_key, known.first_key->line});
    }
  }
}

}  // namespace muster::auth
