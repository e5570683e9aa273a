#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/channel.h"

namespace muster::server {

struct Newcomer;
struct Peer;

/// Who is told what happens to all connections.
class ConnectionEvents {
 public:
  /// May destroy the newcomer.
  virtual void received(Newcomer& newcomer, std::string_view bytes) = 0;
  virtual void closed(Newcomer& newcomer, net::CloseCause cause, const std::string& detail) = 0;

  virtual void received(Peer& peer, std::string_view bytes) = 0;
  virtual void closed(Peer& peer, net::CloseCause cause, const std::string& detail) = 0;
  virtual void drained(Peer& peer) = 0;
  virtual std::size_t readable_bytes(Peer& peer) = 0;

 protected:
  ~ConnectionEvents() = default;
};

}  // namespace muster::server
