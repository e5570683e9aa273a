#include "nccl/doubles/peers.h"

#include <poll.h>

#include <utility>

namespace nccl_double {

namespace {

// Who waits for one connection may be given it by who waits for another; it looks that often.
constexpr int look_again_ms = 5;

}  // namespace

Connected Peers::connect(const sockaddr_in& address, int own_rank, Purpose purpose,
                         std::uint64_t number, const Cancel& cancel) const {
  Connected connected = connect_to(address, cancel);
  if (connected.outcome != Outcome::done) return connected;
  const Hello hello{magic_, own_rank, purpose, number};
  connected.outcome = send(connected.socket, &hello, sizeof hello, cancel);
  return connected;
}

Connected Peers::accept(int from, Purpose purpose, std::uint64_t number, const Cancel& cancel) {
  const int listener = listener_.socket.descriptor();
  for (;;) {
    if (cancel.is_set()) return {{}, Outcome::cancelled};
    pollfd waited[2] = {{cancel.descriptor(), POLLIN, 0}, {listener, POLLIN, 0}};
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find({from, purpose, number});
    if (found != kept_.end()) {
      Socket socket = std::move(found->second);
      kept_.erase(found);
      return {std::move(socket), Outcome::done};
    }
    ::poll(waited, 2, look_again_ms);
    if (cancel.is_set() || waited[1].revents == 0) continue;
    Connected accepted = accept_at(listener_.socket, cancel);
    if (accepted.outcome == Outcome::done) keep(std::move(accepted.socket), cancel);
  }
}

void Peers::keep(Socket socket, const Cancel& cancel) {
  Hello hello;
  if (receive(socket, &hello, sizeof hello, cancel) != Outcome::done) return;
  if (hello.magic != magic_) return;
  kept_[{hello.from, hello.purpose, hello.number}] = std::move(socket);
}

void Peers::close() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  listener_.socket.close();
}

}  // namespace nccl_double
