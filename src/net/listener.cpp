#include "net/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/failure.h"

// Life cycle: created -> `start` -> waits for a newcomer -> takes up to `accepts_per_turn` ->
// waits again; `pause` leaves newcomers in the kernel's backlog. Without a free descriptor accept
// cannot even refuse: then the reserve is closed, one newcomer takes its place, hears why it is
// sent away and goes, and the reserve is taken again. Until then nobody else is accepted.

namespace muster::net {
namespace {

constexpr int accepts_per_turn = 64;
constexpr Duration farewell_time = std::chrono::milliseconds(300);
constexpr Duration retry_delay = std::chrono::milliseconds(50);

UniqueFd make_reserve() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

std::shared_ptr<Listener> Listener::create(asio::io_context& context, Listening listening,
                                           std::string farewell) {
  return std::shared_ptr<Listener>(
      new Listener(context, std::move(listening), std::move(farewell)));
}

Listener::Listener(asio::io_context& context, Listening listening, std::string farewell)
    : context_(context),
      listening_(std::move(listening)),
      farewell_(std::move(farewell)),
      socket_(context, protocol_of(listening_.address()), listening_.fd()),
      tracked_(LoopState::of(context), listening_.release_fd()),  // it is the socket's now
      reserve_(make_reserve()),
      retry_(context) {}

Listener::~Listener() { close(); }

void Listener::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  wait();
}

void Listener::pause() { paused_ = true; }

void Listener::resume() {
  paused_ = false;
  wait();
}

void Listener::close() {
  if (closed_) return;
  closed_ = true;
  tracked_.release();
  asio::error_code ignored;
  socket_.close(ignored);
  retry_.cancel();
  listening_.remove_file();
  if (leaving_) leaving_->close();
}

void Listener::wait() {
  if (closed_ || paused_ || wait_pending_ || retry_pending_ || !callbacks_.accepted) return;
  wait_pending_ = true;
  socket_.async_wait(Connection::Socket::wait_read,
                     [weak = weak_from_this()](const asio::error_code& error) {
                       const auto self = weak.lock();
                       if (!self) return;
                       self->wait_pending_ = false;
                       if (!error) self->accept_some();
                     });
}

void Listener::accept_some() {
  for (int count = 0; count < accepts_per_turn && !paused_ && !closed_; ++count) {
    if (!accept_one()) break;
  }
  wait();
}

/// returns  whether there may be more
bool Listener::accept_one() {
  sockaddr_storage storage{};
  auto* const raw = reinterpret_cast<sockaddr*>(&storage);
  socklen_t size = sizeof(storage);
  const int fd = ::accept4(socket_.native_handle(), raw, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    if (auto socket = socket_on(context_, address(), fd)) {
      callbacks_.accepted(std::move(*socket), {raw, size});
    }
    return true;
  }
  if (errno == EAGAIN) return false;
  if (is_out_of_descriptors(errno)) {
    send_away_one(errno);
  } else if (errno == ENOBUFS || errno == ENOMEM) {
    callbacks_.refused(std::string("accepting: ") + text_of_errno(errno));
    retry_after(retry_delay);
  }
  return !retry_pending_;  // anything else concerns a newcomer that is gone already
}

void Listener::send_away_one(int error) {
  if (reserve_) {
    reserve_.reset();
    const int fd =
        ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (auto socket = socket_on(context_, address(), fd)) {
      leaving_ = Connection::create(std::move(*socket), farewell_time);
      leaving_->send(farewell_);
      leaving_->close_after_flush(farewell_time);
      callbacks_.refused("sent " + leaving_->peer() + " away: " + text_of_errno(error));
    }
  }
  retry_after(retry_delay);
}

void Listener::retry_after(Duration delay) {
  retry_pending_ = true;
  retry_.expires_after(delay);
  retry_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->retry();
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
