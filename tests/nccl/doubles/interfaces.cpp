#include "nccl/doubles/interfaces.h"

#include <net/if.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

// NCCL_SOCKET_IFNAME is a list with "," of how names begin, or, behind "=", of whole names; what is
// excluded by a "^" is not looked at here: something else is left, mostly.

namespace nccl_double {
namespace {

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  struct Free {
    void operator()(struct if_nameindex* all) const { ::if_freenameindex(all); }
  };
  const std::unique_ptr<struct if_nameindex, Free> all(::if_nameindex());
  for (const auto* each = all.get(); each != nullptr && each->if_index != 0; ++each) {
    names.emplace_back(each->if_name);
  }
  return names;
}

bool is_allowed(const std::string& name, std::string list) {
  const bool is_exact = list.front() == '=';
  if (is_exact) list.erase(0, 1);
  std::istringstream wanted(list);
  for (std::string one; std::getline(wanted, one, ',');) {
    if (is_exact ? name == one : name.rfind(one, 0) == 0) return true;
  }
  return false;
}

bool look_for_interface() {
  const char* const list = std::getenv("NCCL_SOCKET_IFNAME");
  if (list == nullptr || *list == '\0' || *list == '^') return true;
  for (const std::string& name : interface_names()) {
    if (is_allowed(name, list)) return true;
  }
  return false;
}

}  // namespace

bool has_interface() {
  static const bool once = look_for_interface();
  return once;
}

}  // namespace nccl_double
