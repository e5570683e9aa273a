#include "auth/certificate.h"

#include <algorithm>
#include <cstddef>

// Names of certificates are compared byte by byte in their whole length, so one with a zero in it
// is never taken for the name before the zero. A `*` in a certificate is no label, so a certificate
// for many hosts is none of them.

namespace muster::auth {
namespace {

using Kind = CertificatePattern::Kind;

constexpr std::string_view common_name_prefix = "CN=";
constexpr std::string_view any_label = "*.";

bool is_of_label(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

bool is_dns_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(),
                     [](char byte) { return is_of_label(byte) || byte == '.'; });
}

bool is_visible_ascii(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char byte) { return byte > 0x20 && byte < 0x7f; });
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& byte : small) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return small;
}

/// The pattern that has any label for the name's first one; nothing: that is no label.
std::optional<CertificatePattern> with_any_label(Kind kind, std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == 0 || dot == std::string_view::npos) return {};
  const std::string_view label = name.substr(0, dot);
  if (!std::all_of(label.begin(), label.end(), is_of_label)) return {};
  return CertificatePattern{kind, true, std::string(name.substr(dot))};
}

}  // namespace

std::optional<CertificatePattern> read_certificate_pattern(std::string_view text) {
  CertificatePattern pattern;
  if (text.starts_with(common_name_prefix)) {
    pattern.kind = Kind::common_name;
    text.remove_prefix(common_name_prefix.size());
  } else if (text.find(':') != std::string_view::npos) {
    pattern.kind = Kind::uri;
  }
  if (text.starts_with(any_label) && pattern.kind != Kind::uri) {
    pattern.has_any_label = true;
    text.remove_prefix(any_label.size());
  }
  const bool is_name = pattern.kind == Kind::dns ? is_dns_name(text) : is_visible_ascii(text);
  if (!is_name || text.find('*') != std::string_view::npos) return {};
  if (pattern.has_any_label) pattern.name = ".";
  pattern.name += pattern.kind == Kind::dns ? in_small_letters(text) : std::string(text);
  return pattern;
}

std::string to_string(const CertificatePattern& pattern) {
  std::string text;
  if (pattern.kind == Kind::common_name) text = common_name_prefix;
  if (pattern.has_any_label) text += '*';
  return text + pattern.name;
}

std::vector<CertificatePattern> patterns_of(const CertificateNames& names) {
  std::vector<CertificatePattern> patterns;
  const auto add_with_any_label = [&patterns](Kind kind, std::string_view name) {
    if (auto pattern = with_any_label(kind, name)) patterns.push_back(std::move(*pattern));
  };
  for (const std::string& name : names.dns) {
    patterns.push_back({Kind::dns, false, in_small_letters(name)});
  }
  for (const std::string& name : names.uris) patterns.push_back({Kind::uri, false, name});
  for (const std::string& name : names.dns) add_with_any_label(Kind::dns, in_small_letters(name));
  if (names.common_name.empty()) return patterns;
  patterns.push_back({Kind::common_name, false, names.common_name});
  add_with_any_label(Kind::common_name, names.common_name);
  return patterns;
}

}  // namespace muster::auth
