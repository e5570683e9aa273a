#include "nccl/doubles/root.h"

#include <arpa/inet.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "nccl/doubles/counts.h"
#include "nccl/doubles/socket.h"

// The life of a root: one thread serves one connection after the other, without any limit of time.
// What does not begin with the magic is dropped. A rank that checks in is told its successor, and
// tells its predecessor, as soon as both are known. It ends when all are told, when somebody shuts
// its socket down, or when a check-in cannot be: then it closes its port, and says why to nobody
// but its own process.

namespace nccl_double {
namespace {

constexpr std::size_t address_offset = 8;
constexpr int rank_count_max = 4096;
constexpr const char* environment_name = "NCCL_COMM_ID";

/// Reads all; blocks as NCCL's root does.
bool read_all(int descriptor, void* bytes, std::size_t size_bytes) {
  return ::recv(descriptor, bytes, size_bytes, MSG_WAITALL) == static_cast<ssize_t>(size_bytes);
}

class Root {
 public:
  Root(Socket listener, Magic magic) : listener_(std::move(listener)), magic_(magic) {}

  void serve() {
    while (!is_complete()) {
      const Socket peer(::accept(listener_.descriptor(), nullptr, nullptr));
      if (!peer.is_open()) return;  // it was shut down
      Magic magic{};
      if (!read_all(peer.descriptor(), magic.data(), magic.size()) || magic != magic_) continue;
      CheckIn check_in;
      if (!read_all(peer.descriptor(), &check_in, sizeof check_in)) {
        return set_last_error("bootstrapRoot: a rank went away while it checked in");
      }
      if (!admit(check_in)) return;
    }
  }

 private:
  bool is_complete() const { return !ranks_.empty() && told_ == ranks_.size(); }

  bool admit(const CheckIn& check_in) {
    const auto rank = static_cast<std::size_t>(check_in.rank);
    if (check_in.rank_count < 1 || check_in.rank_count > rank_count_max) return false;
    if (ranks_.empty()) ranks_.resize(static_cast<std::size_t>(check_in.rank_count));
    const std::size_t count = ranks_.size();
    if (check_in.rank_count != static_cast<int>(count) || rank >= count) {
      set_last_error("bootstrapRoot: mismatch in rank count from procs " + std::to_string(count) +
                     " : " + std::to_string(check_in.rank_count));
      return false;
    }
    if (ranks_[rank]) {
      set_last_error("bootstrapRoot: rank " + std::to_string(rank) + " of " +
                     std::to_string(count) + " ranks has already checked in");
      return false;
    }
    ranks_[rank] = check_in;
    tell(rank);
    if (count > 1) tell((rank + count - 1) % count);
    return true;
  }

  /// Tells a rank its successor, if both are known. One that cannot be reached is not missed.
  void tell(std::size_t rank) {
    const auto& successor = ranks_[(rank + 1) % ranks_.size()];
    if (!ranks_[rank] || !successor) return;
    ++told_;
    const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    const auto* const address = reinterpret_cast<const sockaddr*>(&ranks_[rank]->for_root);
    if (::connect(socket.descriptor(), address, sizeof(sockaddr_in)) != 0) return;
    ::send(socket.descriptor(), &successor->for_ring, sizeof(sockaddr_in), MSG_NOSIGNAL);
  }

  Socket listener_;
  Magic magic_;
  std::vector<std::optional<CheckIn>> ranks_;
  std::size_t told_ = 0;
};

int start_root(Listener listener, const Magic& magic) {
  if (!listener.socket.is_open()) {
    set_last_error("Bootstrap : cannot listen");
    return system_error;
  }
  ++counts().ids;
  ++counts().threads;
  std::thread([listener = std::move(listener.socket), magic]() mutable {
    { Root(std::move(listener), magic).serve(); }
    --counts().ids;
    --counts().threads;
  }).detach();
  return success;
}

/// HOST:PORT, the host as an IPv4 address; NCCL takes names and IPv6, too.
int parse_environment(const std::string& text, UniqueId& id) {
  RootPlace place{{2, char(0x80), 2, char(0x80), 2, char(0x80), 2, char(0x80)}, {}};
  const std::size_t colon = text.find(':');
  in_addr host{};
  const std::string name = text.substr(0, colon);
  if (::inet_pton(AF_INET, name.c_str(), &host) != 1) {
    set_last_error("Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>");
    return invalid_argument;
  }
  const int port = colon == std::string::npos ? 65535 : std::atoi(text.c_str() + colon + 1);
  place.address.sin_family = AF_INET;
  place.address.sin_addr = host;
  place.address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(id.internal.data(), place.magic.data(), place.magic.size());
  std::memcpy(id.internal.data() + address_offset, &place.address, sizeof place.address);
  return success;
}

}  // namespace

RootPlace place_of(const UniqueId& id) {
  RootPlace place;
  std::memcpy(place.magic.data(), id.internal.data(), place.magic.size());
  std::memcpy(&place.address, id.internal.data() + address_offset, sizeof place.address);
  return place;
}

int make_unique_id(UniqueId& id) {
  id.internal.fill(0);
  if (const char* const text = std::getenv(environment_name)) return parse_environment(text, id);
  Magic magic{};
  if (::getrandom(magic.data(), magic.size(), 0) != static_cast<ssize_t>(magic.size())) {
    return internal_error;
  }
  Listener listener = listen_on_loopback();
  std::memcpy(id.internal.data(), magic.data(), magic.size());
  std::memcpy(id.internal.data() + address_offset, &listener.address, sizeof listener.address);
  return start_root(std::move(listener), magic);
}

bool is_id_of_environment() { return std::getenv(environment_name) != nullptr; }

int start_root_of_environment(const UniqueId& id) {
  const RootPlace place = place_of(id);
  return start_root(listen_on_loopback(ntohs(place.address.sin_port)), place.magic);
}

}  // namespace nccl_double
