#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "nccl/doubles/root.h"
#include "nccl/doubles/socket.h"

namespace nccl_double {

/// What a connection between two ranks is for.
enum class Purpose : std::int32_t { ring, data, child_ring, point_to_point };

/// Where the other ranks of a communicator find this one: each connection begins with who comes,
/// and what for. Those that nobody waits for yet are kept.
class Peers {
 public:
  explicit Peers(const Magic& magic) : magic_(magic), listener_(listen_on_loopback()) {}

  const sockaddr_in& address() const { return listener_.address; }
  Connected connect(const sockaddr_in& address, int own_rank, Purpose purpose, std::uint64_t number,
                    const Cancel& cancel) const;
  Connected accept(int from, Purpose purpose, std::uint64_t number, const Cancel& cancel);

  void close();
  Socket take_listener() { return std::move(listener_.socket); }

 private:
  using Key = std::tuple<std::int32_t, Purpose, std::uint64_t>;
  struct Hello {
    Magic magic{};
    std::int32_t from = 0;
    Purpose purpose{};
    std::uint64_t number = 0;
  };

  void keep(Socket socket, const Cancel& cancel);

  Magic magic_;
  Listener listener_;
  std::mutex mutex_;
  std::map<Key, Socket> kept_;
};

}  // namespace nccl_double
