#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/tcpstore/request.h"

namespace muster::sim {

/// A request of TCPStore's as its client means it.
struct GuestRequest {
  using Command = server::tcpstore::Command;
  using Dialect = server::tcpstore::Dialect;

  Command command = Command::ping;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::int64_t number = 0;
  std::string unreadable;  ///< no request, but these bytes

  bool is_same(const server::tcpstore::Request& read) const;
  std::string text() const;
};

/// What travels. It is written down here once more: the product does not judge itself.
std::string bytes_of(const GuestRequest& request, GuestRequest::Dialect dialect);

// What replies are made of.
std::string number_bytes(std::int64_t number);
std::string sized_bytes(const std::string& bytes);

}  // namespace muster::sim
