#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::server::http {

/// The field of that name in "a=b&c=d", without escapes; nothing: there is none, or it is wrong.
std::optional<std::string> field_of_form(std::string_view form, std::string_view name);

/// The value of the first cookie of that name in the field Cookie; empty: there is none.
std::string_view cookie_in(std::string_view cookies, std::string_view name);

/// Whether a page of the server itself has sent a form: a browser says where the page is from.
///
/// origin      the field Origin; empty: there is none
/// fetch_site  the field Sec-Fetch-Site; likewise
/// host        the field Host
bool is_own_page(std::string_view origin, std::string_view fetch_site, std::string_view host);

}  // namespace muster::server::http
