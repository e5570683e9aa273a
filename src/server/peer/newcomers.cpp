#include "server/peer/newcomers.h"

#include <string_view>

namespace muster::server {
namespace {

/// This machine is not.
bool is_counted(std::string_view unit) {
  return !unit.starts_with("127.") && unit != "::/64" && !unit.starts_with("uid ");
}

}  // namespace

void Newcomers::add(Peer& peer, base::Instant now) {
  peer.hello = std::make_unique<HelloStage>(peer);
  peer.hello->deadline = now + limits_.hello_time;
  waiting_.append(peer.hello->place);
  ++count_;
  if (!is_counted(peer.unit)) return;
  if (++counts_[peer.unit] == limits_.hello_connections_per_address_max) {
    ++full_hosts_count_;
  }
}

void Newcomers::remove(Peer& peer) {
  if (!peer.hello) return;
  --count_;
  if (const auto found = counts_.find(peer.unit); found != counts_.end()) {
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
