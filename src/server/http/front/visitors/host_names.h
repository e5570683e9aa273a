#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::server::http {

/// How this server may be called in the field Host. A page of somebody else, whose name he has made
/// to mean this machine, is asked for by his name, and refused.
class HostNames {
 public:
  /// names  beside those of loopback and the address that a request has come to
  explicit HostNames(const std::vector<std::string>& names);

  /// host        as it came, with a port or without
  /// came_to     the own address of the connection
  bool is_ours(std::string_view host, std::string_view came_to) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace muster::server::http
