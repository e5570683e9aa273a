#include "auth/derivation.h"

namespace muster::auth {

std::string info_of_id(std::string_view server_name) {
  return "muster 1 client to server: id " + std::string(server_name);
}

std::string info_of_secret(std::string_view server_name) {
  return "muster 1 client to server: secret " + std::string(server_name);
}

}  // namespace muster::auth
