#include "net/address/resolver.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/thread.h"
#include "net/failure.h"

namespace muster::net {
namespace {

Resolved look_up(const std::string& host, std::uint16_t port, int flags, int& status) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  errno = 0;
  status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  Resolved resolved;
  if (status != 0) {
    resolved.detail =
        host + ": " + (status == EAI_SYSTEM ? text_of_errno(errno) : ::gai_strerror(status));
    return resolved;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const SocketAddress address(entry->ai_addr, entry->ai_addrlen);
    auto& known = resolved.addresses;
    if (std::find(known.begin(), known.end(), address) == known.end()) known.push_back(address);
  }
  return resolved;
}

}  // namespace

std::string text_of_errno(int number) { return std::system_category().message(number); }

Resolved resolve(const std::string& host, std::uint16_t port) {
  int status = 0;
  return look_up(host, port, 0, status);
}

std::optional<Resolved> resolve_number(const std::string& host, std::uint16_t port) {
  int status = 0;
  Resolved resolved = look_up(host, port, AI_NUMERICHOST, status);
  if (status != 0) return std::nullopt;
  return resolved;
}

std::string note_on_loopback(const std::string& host, const SocketAddress& address) {
  const bool is_plain = host.empty() || host == "localhost" || resolve_number(host, 0);
  if (is_plain || address.is_unix() || !address.is_local_only()) return {};
  return "only processes of this host can reach " + address.host() + ", the address of " + host +
         " here";
}

void resolve_async(std::shared_ptr<Mailbox> mailbox, std::string host, std::uint16_t port,
                   std::function<void(Resolved resolved)> done) {
  auto look_up_there = [mailbox, host, port, done] {
    mailbox->post([done, resolved = resolve(host, port)] { done(resolved); });
  };
  try {
    base::start_thread("muster-dns", std::move(look_up_there)).detach();
  } catch (const std::system_error& error) {
    mailbox->post([done, detail = host + ": no thread to look it up: " + error.what()] {
      done(Resolved{{}, detail});
    });
  }
}

}  // namespace muster::net
