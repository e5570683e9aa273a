#include "server/http/front/visitors/form.h"

#include <algorithm>

#include "server/http/front/target.h"

namespace muster::server::http {

std::optional<std::string> field_of_form(std::string_view form, std::string_view name) {
  while (!form.empty()) {
    const std::string_view field = form.substr(0, form.find('&'));
    form.remove_prefix(std::min(form.size(), field.size() + 1));
    const std::size_t equals = field.find('=');
    if (equals == field.npos || field.substr(0, equals) != name) continue;
    std::string value(field.substr(equals + 1));
    std::replace(value.begin(), value.end(), '+', ' ');
    return without_escapes(value);
  }
  return {};
}

std::string_view cookie_in(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    std::string_view cookie = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), cookie.size() + 1));
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (cookie.starts_with(name) && cookie.substr(name.size()).starts_with('='))
      return cookie.substr(name.size() + 1);
  }
  return {};
}

bool is_own_page(std::string_view origin, std::string_view fetch_site, std::string_view host) {
  if (!fetch_site.empty() && fetch_site != "same-origin") return false;
  if (origin.empty()) return true;
  const std::size_t slashes = origin.find("://");
  return slashes != origin.npos && origin.substr(slashes + 3) == host;
}

}  // namespace muster::server::http
