#pragma once

#include <sys/socket.h>

#include <set>
#include <string>
#include <vector>

namespace muster::gloo_internal {

/// An IP address and its port, as bytes; empty: it is none.
std::string address_bytes_of(const sockaddr_storage& address);

/// The sockets of this process that listen or were accepted at one of `own`, or are connected to
/// one of `theirs`: Gloo does not tell which it has.
///
/// cost  two calls of the system for each descriptor of the process
std::vector<int> find_sockets(const std::set<std::string>& own,
                              const std::set<std::string>& theirs);

}  // namespace muster::gloo_internal
