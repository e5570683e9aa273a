#include "server/peer/newcomers.h"

namespace muster::server {

void Newcomers::add(Peer& peer, const net::SocketAddress& address, base::Instant now) {
  peer.hello = std::make_unique<HelloStage>(peer);
  peer.hello->deadline = now + limits_.hello_time;
  waiting_.append(peer.hello->place);
  ++count_;
  if (address.is_local_only()) return;
  peer.hello->counted_host = address.host();
  if (++counts_[peer.hello->counted_host] == limits_.hello_connections_per_address_max) {
    ++full_hosts_count_;
  }
}

void Newcomers::remove(Peer& peer) {
  if (!peer.hello) return;
  --count_;
  if (!peer.hello->counted_host.empty()) {
    const auto found = counts_.find(peer.hello->counted_host);
    if (found->second-- == limits_.hello_connections_per_address_max) --full_hosts_count_;
    if (found->second == 0) counts_.erase(found);
  }
  peer.hello.reset();
}

Peer* Newcomers::overdue(base::Instant now) const {
  if (waiting_.empty() || waiting_.first().hello->deadline > now) return nullptr;
  return &waiting_.first();
}

base::Instant Newcomers::next_deadline() const {
  return waiting_.empty() ? base::far_future : waiting_.first().hello->deadline;
}

}  // namespace muster::server
