#pragma once

#include <string>
#include <string_view>

namespace muster::auth {

// What keys are derived with, at both sides alike, before they are used: the id that a client names
// its key by, and the secret that it proves. Each is for one server name, and for clients that
// speak to servers, so that what one of them has said proves nothing anywhere else.

/// server_name  as the server and its clients are told; empty: none
std::string info_of_id(std::string_view server_name);
std::string info_of_secret(std::string_view server_name);

}  // namespace muster::auth
