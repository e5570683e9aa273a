#include "server/http/front/visitors/host_names.h"

#include <algorithm>
#include <optional>

namespace muster::server::http {
namespace {

/// "NAME", "NAME:PORT" or "[ADDRESS]:PORT" -> the name, in small letters, without brackets.
std::optional<std::string> name_in(std::string_view host) {
  std::string_view rest;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == host.npos) return {};
    rest = host.substr(end + 1);
    host = host.substr(1, end - 1);
  } else {
    const std::size_t colon = std::min(host.find(':'), host.size());
    rest = host.substr(colon);
    host = host.substr(0, colon);
  }
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  if (!rest.empty() &&
      (rest.front() != ':' || !std::all_of(rest.begin() + 1, rest.end(), is_digit)))
    return {};
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return {};
  std::string name(host);
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return name;
}

}  // namespace

HostNames::HostNames(const std::vector<std::string>& names)
    : names_{"localhost", "127.0.0.1", "::1"} {
  for (const std::string& name : names)
    if (const auto read = name_in(name)) names_.push_back(*read);
}

bool HostNames::is_ours(std::string_view host, std::string_view came_to) const {
  const auto name = name_in(host);
  if (!name) return false;
  return *name == came_to || std::find(names_.begin(), names_.end(), *name) != names_.end();
}

}  // namespace muster::server::http
