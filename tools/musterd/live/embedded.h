#pragma once

#include <string_view>

// Files that the build has put into the program.

namespace musterd {

/// src/server/http/page.html.
std::string_view page();
/// The Content-Security-Policy with which it is sent: it allows its own script and style by their
/// digests, and no others.
std::string_view page_policy();
/// docs/openapi.json.
std::string_view openapi();

}  // namespace musterd
