#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "core/session/connection_limits.h"
#include "server/peer/peer.h"

namespace muster::server {

/// Who has connected and not said hello yet: how many there are, of which hosts, since when.
class Newcomers {
 public:
  explicit Newcomers(const core::ConnectionLimits& limits) : limits_(limits) {}

  void add(Peer& peer, base::Instant now);
  /// The peer has said its hello, or is gone.
  void remove(Peer& peer);

  std::uint32_t count() const { return count_; }
  /// No more may be accepted: of anybody, or of hosts that are counted.
  bool is_full() const { return count_ >= limits_.hello_connections_max; }
  bool has_full_host() const { return full_hosts_count_ > 0; }

  /// One whose time is over; null: there is none. The caller removes it.
  Peer* overdue(base::Instant now) const;
  /// When the next one's time is over; far_future when there is none.
  base::Instant next_deadline() const;

 private:
  const core::ConnectionLimits& limits_;
  std::uint32_t count_ = 0;
  std::uint32_t full_hosts_count_ = 0;
  std::unordered_map<std::string, std::uint32_t> counts_;
  core::Chain<Peer> waiting_;  ///< who came first is overdue first
};

}  // namespace muster::server
