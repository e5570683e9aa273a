#include "server/newcomers.h"

namespace muster::server {
namespace {

constexpr Duration hello_time = std::chrono::seconds(2);

}  // namespace

void Newcomers::add(Peer& peer, const net::SocketAddress& address, base::Instant now) {
  peer.hello = std::make_unique<HelloStage>();
  peer.hello->deadline = now + hello_time;
  deadlines_.emplace_back(peer.hello->deadline, peer.id);
  ++count_;
  if (address.is_local_only()) return;
  peer.hello->counted_host = address.host();
  if (++counts_[peer.hello->counted_host] == per_host_max_) ++full_hosts_count_;
}

void Newcomers::remove(Peer& peer) {
  if (!peer.hello) return;
  --count_;
  if (!peer.hello->counted_host.empty()) {
    const auto found = counts_.find(peer.hello->counted_host);
    if (found->second-- == per_host_max_) --full_hosts_count_;
    if (found->second == 0) counts_.erase(found);
  }
  peer.hello.reset();
  if (count_ == 0) deadlines_.clear();
}

std::optional<core::ConnectionId> Newcomers::take_overdue(base::Instant now) {
  if (deadlines_.empty() || deadlines_.front().first > now) return std::nullopt;
  const core::ConnectionId id = deadlines_.front().second;
  deadlines_.pop_front();
  return id;
}

base::Instant Newcomers::next_deadline() const {
  return deadlines_.empty() ? base::far_future : deadlines_.front().first;
}

}  // namespace muster::server
