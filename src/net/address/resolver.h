#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/address/socket_address.h"
#include "net/loop.h"

namespace muster::net {

struct Resolved {
  std::vector<SocketAddress> addresses;  ///< each once, in the system's order
  std::string detail;                    ///< why there are none
};

/// Looks up a host name. Blocks, possibly for as long as name servers take to not answer.
Resolved resolve(const std::string& host, std::uint16_t port);

/// Does not block; nothing when `host` is a name and no number.
std::optional<Resolved> resolve_number(const std::string& host, std::uint16_t port);

/// "only processes of this host can reach 127.0.1.1, the address of NAME here": for a name, other
/// than localhost, that has an address of loopback. Empty for others.
std::string note_on_loopback(const std::string& host, const SocketAddress& address);

/// Looks up on a thread of its own; `done` runs on the loop, unless that is gone by then.
void resolve_async(std::shared_ptr<Mailbox> mailbox, std::string host, std::uint16_t port,
                   std::function<void(Resolved resolved)> done);

}  // namespace muster::net
