#include "gloo/mesh.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include "client/failure.h"
#include "gloo/sockets.h"

namespace muster::gloo_internal {
namespace {

/// Gloo's context, over a transport that was made and connected elsewhere.
class Context final : public ::gloo::Context {
 public:
  Context(std::shared_ptr<::gloo::transport::Device> device,
          std::shared_ptr<::gloo::transport::Context> transport)
      : ::gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
  }
};

constexpr auto longer_than_any_deadline = std::chrono::hours(24);

::gloo::transport::tcp::Address address_of(const std::string& bytes) {
  return ::gloo::transport::tcp::Address(std::vector<char>(bytes.begin(), bytes.end()));
}

std::set<std::string> places_of(const std::vector<std::string>& addresses) {
  std::set<std::string> places;
  for (const std::string& address : addresses) {
    if (!address.empty()) places.insert(address_bytes_of(address_of(address).getSockaddr()));
  }
  return places;
}

template <class Address>
int order_of(const Address& own, const Address& other) {
  return std::memcmp(&own, &other, sizeof own);
}

/// Whether it is this side of a pair that waits for the other, as Gloo decides it: the one with the
/// lower address, then with the lower number of its port as it lies in memory.
bool listens(const std::string& own, const std::string& other) {
  const auto own_address = address_of(own).getSockaddr();
  const auto other_address = address_of(other).getSockaddr();
  const auto* const a4 = reinterpret_cast<const sockaddr_in*>(&own_address);
  const auto* const b4 = reinterpret_cast<const sockaddr_in*>(&other_address);
  if (own_address.ss_family == AF_INET) {
    const int order = order_of(a4->sin_addr, b4->sin_addr);
    return order != 0 ? order < 0 : a4->sin_port < b4->sin_port;
  }
  const auto* const a6 = reinterpret_cast<const sockaddr_in6*>(&own_address);
  const auto* const b6 = reinterpret_cast<const sockaddr_in6*>(&other_address);
  const int order = order_of(a6->sin6_addr, b6->sin6_addr);
  return order != 0 ? order < 0 : a6->sin6_port < b6->sin6_port;
}

}  // namespace

Error gloo_error(const std::string& said) {
  return client::failure(ErrorCode::gloo, "Gloo: " + said);
}

Result<std::shared_ptr<Mesh>> Mesh::open(const Endpoint& endpoint, int rank, int world_size) {
  std::shared_ptr<Mesh> mesh(new Mesh());
  try {
    ::gloo::transport::tcp::attr attributes(endpoint.text.c_str());
    attributes.ai_family = endpoint.family;
    auto device = ::gloo::transport::tcp::CreateDevice(attributes);
    auto inner = device->createContext(rank, world_size);
    inner->setTimeout(longer_than_any_deadline);
    mesh->addresses_.resize(static_cast<std::size_t>(world_size));
    for (int peer = 0; peer < world_size; ++peer) {
      if (peer == rank) continue;
      const std::vector<char> address = inner->createPair(peer)->address().bytes();
      mesh->addresses_[static_cast<std::size_t>(peer)].assign(address.begin(), address.end());
    }
    mesh->transport_ = std::make_shared<Transport>(std::move(inner));
    mesh->context_ = std::make_shared<Context>(std::move(device), mesh->transport_);
  } catch (const std::exception& error) {
    return gloo_error(error.what());
  }
  mesh->close_on_exec();
  return mesh;
}

/// One after the other: where the peer connects, the kernel takes it while this rank is still at
/// another one.
Result<void> Mesh::connect(const std::vector<std::string>& theirs) {
  theirs_ = theirs;
  try {
    for (std::size_t peer = 0; peer < theirs.size(); ++peer) {
      if (addresses_[peer].empty()) continue;
      connecting_ = static_cast<int>(peer);
      listening_for_ = listens(addresses_[peer], theirs[peer]) ? connecting_.load() : -1;
      if (!is_given_up_) {
        transport_->getPair(connecting_)->connect({theirs[peer].begin(), theirs[peer].end()});
      }
      if (is_given_up_) return client::failure(ErrorCode::aborted, "given up");
    }
  } catch (const std::exception& error) {
    return gloo_error(error.what());
  }
  connecting_ = -1;
  close_on_exec();
  return {};
}

/// A pair that is closed lets its `connect` return.
void Mesh::give_up() {
  is_given_up_ = true;
  close(listening_for_);
}

void Mesh::cut() {
  for (int peer = 0; peer < static_cast<int>(addresses_.size()); ++peer) close(peer);
}

std::vector<int> Mesh::sockets() const {
  return find_sockets(places_of(addresses_), places_of(theirs_));
}

/// Gloo's are not: a program that this process starts would keep connections open whose end the
/// other ranks are to see.
void Mesh::close_on_exec() const {
  for (const int socket : sockets()) ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

void Mesh::close_inherited() const {
  for (const int socket : sockets()) ::close(socket);
}

void Mesh::close(int peer) {
  if (peer < 0 || addresses_[static_cast<std::size_t>(peer)].empty()) return;
  try {
    transport_->getPair(peer)->close();
  } catch (const std::exception&) {
    return;  // closed it is
  }
}

}  // namespace muster::gloo_internal
