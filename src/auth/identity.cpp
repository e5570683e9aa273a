#include "auth/identity.h"

#include <algorithm>

#include "auth/fields.h"
#include "muster/log.h"
#include "wire/hello.h"

namespace muster::auth {
namespace {

constexpr std::size_t identity_name_bytes_max = 64;
constexpr std::string_view default_namespace = "\"\"";

}  // namespace

bool is_part_of_identity(std::string_view text) {
  const auto is_allowed = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-';
  };
  return !text.empty() && text.size() <= identity_name_bytes_max &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

std::optional<Identity> read_identity(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view tenant = text.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (!is_part_of_identity(tenant) || !is_part_of_identity(name)) return {};
  return Identity{std::string(tenant), std::string(name)};
}

std::string to_string(const Identity& identity) {
  if (identity.tenant == identity.name) return identity.name;
  return identity.tenant + "/" + identity.name;
}

std::optional<NamespacePatterns> NamespacePatterns::read(std::string_view text) {
  NamespacePatterns read;
  for (Fields patterns(text, ','); const auto each = patterns.next();) {
    auto pattern = read_pattern(*each);
    if (!pattern) return {};
    read.patterns_.push_back(std::move(*pattern));
  }
  return read;
}

std::optional<NamespacePatterns::Pattern> NamespacePatterns::read_pattern(std::string_view text) {
  if (text == default_namespace) return Pattern{};
  const bool is_beginning = !text.empty() && text.back() == '*';
  if (is_beginning) text.remove_suffix(1);
  const bool is_any = text.empty() && is_beginning;
  const bool is_of_a_name = !text.empty() && text.size() <= wire::name_bytes_max &&
                            text.find_first_of(" \"*") == std::string_view::npos &&
                            printable(text) == text;
  if (!is_any && !is_of_a_name) return {};
  return Pattern{std::string(text), is_beginning};
}

bool NamespacePatterns::allows(std::string_view name_space) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [name_space](const Pattern& pattern) {
    return pattern.is_beginning ? name_space.starts_with(pattern.text) : name_space == pattern.text;
  });
}

std::string to_string(const NamespacePatterns& patterns) {
  std::string text;
  for (const NamespacePatterns::Pattern& each : patterns.patterns_) {
    if (!text.empty()) text += ',';
    const bool is_default = each.text.empty() && !each.is_beginning;
    text += is_default ? default_namespace : std::string_view(each.text);
    if (each.is_beginning) text += '*';
  }
  return text;
}

}  // namespace muster::auth
