#include "net/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/failure.h"

// Life cycle: created -> `start` -> waits for a newcomer -> takes up to `accepts_per_turn` in each
// turn until nobody is left -> waits again. It has its part of each turn, so that the kernel's
// backlog does not run full however many others are ready: who finds no place there tries again
// after a second only.
//
// Without a free descriptor accept cannot even refuse. Somebody may give up one for the newcomer;
// else the reserve is closed, one newcomer takes its place, hears why it is sent away and goes, and
// the reserve is taken again. Until then nobody else is accepted.

namespace muster::net {
namespace {

constexpr int accepts_per_turn = 32;  // each takes 10 to 60 us
constexpr Duration farewell_time = std::chrono::milliseconds(300);
constexpr Duration retry_delay = std::chrono::milliseconds(50);

UniqueFd make_reserve() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

std::shared_ptr<Listener> Listener::create(Loop& loop, Listening listening, std::string farewell) {
  return std::shared_ptr<Listener>(new Listener(loop, std::move(listening), std::move(farewell)));
}

Listener::Listener(Loop& loop, Listening listening, std::string farewell)
    : Watcher(loop),
      listening_(std::move(listening)),
      farewell_(std::move(farewell)),
      reserve_(make_reserve()),
      retry_(loop) {
  hold(UniqueFd(listening_.release_fd()));
}

Listener::~Listener() { close(); }

void Listener::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  wait();
}

void Listener::close() {
  if (closed_) return;
  closed_ = true;
  let_go();
  retry_.cancel();
  listening_.remove_file();
  if (leaving_) leaving_->close();
}

void Listener::wait() {
  if (closed_ || !callbacks_.accepted) return;
  const int failed = watch(retry_pending_ ? 0U : std::uint32_t{EPOLLIN});
  if (failed == 0) return;
  callbacks_.refused(std::string("waiting: ") + text_of_errno(failed));
  retry_after(retry_delay);
}

void Listener::on_ready(std::uint32_t) {
  if (!going_on_) accept_some();
}

void Listener::accept_some() {
  const auto self = shared_from_this();
  for (int count = 0; count < accepts_per_turn && !closed_; ++count) {
    if (!accept_one()) return;
  }
  if (!closed_) go_on();
}

/// In the next turn, also when the set of ready sockets has so many others that it does not come to
/// this one.
void Listener::go_on() {
  accepted_in_turn_ = loop().turn_number();
  going_on_ = shared_from_this();
  loop().post(*this);
}

void Listener::run() {
  if (loop().turn_number() == accepted_in_turn_) return loop().post(*this);
  const auto self = std::exchange(going_on_, nullptr);
  if (!closed_ && !retry_pending_) accept_some();
}

void Listener::drop() noexcept { going_on_.reset(); }

/// returns  whether there may be more
bool Listener::accept_one() {
  sockaddr_storage storage{};
  auto* const raw = reinterpret_cast<sockaddr*>(&storage);
  socklen_t size = sizeof(storage);
  UniqueFd newcomer(::accept4(fd(), raw, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (newcomer) {
    callbacks_.accepted(std::move(newcomer), {raw, size});
    return true;
  }
  if (errno == EAGAIN) return false;
  if (is_out_of_descriptors(errno)) {
    const int error = errno;
    if (!is_awaited()) return false;
    if (!callbacks_.make_room || !callbacks_.make_room()) send_away_one(error);
  } else if (errno == ENOBUFS || errno == ENOMEM) {
    callbacks_.refused(std::string("accepting: ") + text_of_errno(errno));
    retry_after(retry_delay);
  }
  return !retry_pending_;  // anything else concerns a newcomer that is gone already
}

/// Without a descriptor accept fails whether or not somebody waits.
bool Listener::is_awaited() const {
  pollfd socket{fd(), POLLIN, 0};
  return ::poll(&socket, 1, 0) != 0;
}

void Listener::send_away_one(int error) {
  if (reserve_) {
    reserve_.reset();
    UniqueFd newcomer(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (newcomer) {
      const SocketAddress peer = SocketAddress::peer_of(newcomer.get());
      leaving_ = Connection::accepted(loop(), std::move(newcomer), peer);
      leaving_->send(farewell_);
      leaving_->close_after_flush(farewell_time);
      callbacks_.refused("sent " + leaving_->peer() + " away: " + text_of_errno(error));
    }
  }
  retry_after(retry_delay);
}

void Listener::retry_after(Duration delay) {
  retry_pending_ = true;
  [[maybe_unused]] const int ignored = watch(0);
  retry_.set_after(delay, [this] {
    const auto self = shared_from_this();
    retry();
  });
}

void Listener::retry() {
  retry_pending_ = false;
  if (closed_) return;
  if (leaving_ && leaving_->is_lingering()) return retry_after(retry_delay);
  leaving_.reset();
  if (!reserve_) reserve_ = make_reserve();
  if (!reserve_) return retry_after(retry_delay);
  wait();
}

}  // namespace muster::net
