#include "net/connector.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/monotonic_now.h"
#include "net/failure.h"

// Life cycle of one `connect`: look the name up unless its addresses are known -> try the addresses
// in rounds -> the first connection, or the errors of all addresses. An address has 250 ms in the
// first round, so that a silent one does not delay the others, then 500 ms, and in the last round
// the rest of its time. Each turn has a fresh socket: the kernel repeats a SYN that was lost, or
// dropped by a full backlog, only after a second.
//
// Everything that is awaited carries the number of its attempt; what arrives under an older one
// is dropped.

namespace muster::net {
namespace {

using base::monotonic_now;

constexpr Duration first_patience = std::chrono::milliseconds(250);
constexpr Duration full_backlog_pause = std::chrono::milliseconds(20);
constexpr std::size_t errors_told_max = 4;

ConnectFailure kind_of(int error) {
  const bool nobody_listens = error == ECONNREFUSED || error == ENOENT || error == ENOTSOCK;
  return nobody_listens ? ConnectFailure::refused : ConnectFailure::silent;
}

ConnectError merged(const std::vector<ConnectError>& errors) {
  ConnectError all;
  for (std::size_t index = 0; index < errors.size(); ++index) {
    if (errors[index].kind != ConnectFailure::refused) all.kind = errors[index].kind;
    if (index >= errors_told_max) continue;
    if (index > 0) all.detail += "; ";
    all.detail += errors[index].detail;
  }
  if (errors.size() > errors_told_max) {
    all.detail += " and " + std::to_string(errors.size() - errors_told_max) + " more";
  }
  return all;
}

int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// TCP lets a socket connect to itself when its own port happens to be the one it asks for.
bool is_connected_to_itself(int fd) {
  const SocketAddress peer = SocketAddress::peer_of(fd);
  return !peer.is_unix() && peer == SocketAddress::local_of(fd);
}

/// A close that sends RST: an orderly one would keep the port in TIME-WAIT for a minute.
void reset_on_close(int fd) {
  const linger reset{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

}  // namespace

std::shared_ptr<Connector> Connector::create(Loop& loop, Address address, Options options) {
  return std::shared_ptr<Connector>(new Connector(loop, std::move(address), options));
}

Connector::Connector(Loop& loop, Address address, Options options)
    : Watcher(loop), address_(std::move(address)), options_(options), timer_(loop) {}

void Connector::connect(std::function<void(Outcome outcome)> handler) {
  cancel();
  handler_ = std::move(handler);
  errors_.clear();
  silent_.clear();
  loop().post([weak = weak_from_this(), attempt = attempt_] {
    const auto self = weak.lock();
    if (self && self->attempt_ == attempt) self->begin();
  });
}

void Connector::cancel() {
  given_up_ = awaited();
  if (fd() >= 0) next_ = current_ + 1;  // it has had its turn
  end_attempt();
  handler_ = nullptr;
}

void Connector::mark_good() {
  if (current_ >= addresses_.size()) return;
  good_ = addresses_[current_];
  const auto good = addresses_.begin() + static_cast<std::ptrdiff_t>(current_);
  std::rotate(addresses_.begin(), good, good + 1);
  current_ = 0;
  next_ = 0;
}

/// Ends the attempt under way, whatever it waits for.
void Connector::end_attempt() {
  ++attempt_;
  timer_.cancel();
  let_go();
}

void Connector::after(Duration delay, void (Connector::*member)()) {
  timer_.set_after(delay, [this, member] {
    const auto self = shared_from_this();
    (this->*member)();
  });
}

void Connector::complete(Outcome outcome) {
  end_attempt();
  given_up_.clear();
  if (const auto handler = std::exchange(handler_, nullptr)) handler(std::move(outcome));
}

// Names.

void Connector::begin() {
  if (next_ >= addresses_.size()) addresses_.clear();
  if (!addresses_.empty()) return begin_rounds();
  if (address_.is_unix()) return resolved({{SocketAddress::unix_path(address_.unix_path)}, {}});
  const std::string host = address_.host.empty() ? "localhost" : address_.host;
  if (const auto number = resolve_number(host, address_.port)) return resolved(*number);
  after(options_.resolve_timeout, &Connector::resolve_timed_out);
  if (resolving_) return;  // that of an earlier call will do
  resolving_ = true;
  resolve_async(loop().mailbox(), host, address_.port, [weak = weak_from_this()](Resolved found) {
    const auto self = weak.lock();
    if (!self) return;
    self->resolving_ = false;
    self->resolved(std::move(found));
  });
}

std::string Connector::awaited() const {
  if (!handler_) return given_up_;
  if (resolving_) return address_.host + ": no name server has answered yet";
  std::string all = merged(errors_).detail;
  for (const std::size_t address : silent_) {
    all += (all.empty() ? "" : "; ") + to_string(addresses_[address]) + ": no answer yet";
  }
  return all;
}

void Connector::resolve_timed_out() {
  complete(ConnectError{ConnectFailure::not_resolved, address_.host + ": no name server answers"});
}

void Connector::resolved(Resolved found) {
  addresses_ = std::move(found.addresses);
  const auto good = std::find(addresses_.begin(), addresses_.end(), good_);
  if (good != addresses_.end()) std::rotate(addresses_.begin(), good, good + 1);
  next_ = 0;
  if (!handler_) return;
  if (!addresses_.empty()) return begin_rounds();
  complete(ConnectError{ConnectFailure::not_resolved, std::move(found.detail)});
}

// Attempts.

void Connector::begin_rounds() {
  for (std::size_t index = 0; index < addresses_.size(); ++index)
    silent_.push_back((next_ + index) % addresses_.size());
  remaining_ = options_.attempt_timeout;
  patience_ = first_patience;
  begin_round();
}

void Connector::begin_round() {
  turns_.assign(silent_.begin(), silent_.end());
  const bool is_last = remaining_ < 2 * patience_;
  if (is_last) patience_ = remaining_;
  remaining_ -= patience_;
  try_next();
}

void Connector::try_next() {
  if (turns_.empty()) return end_round();
  current_ = turns_.front();
  turns_.pop_front();
  turn_end_ = base::deadline_after(monotonic_now(), patience_);
  try_again();
}

void Connector::end_round() {
  if (!silent_.empty() && remaining_ > Duration::zero()) {
    patience_ *= 2;
    return begin_round();
  }
  for (const std::size_t address : silent_) note_failure(address, ETIMEDOUT);
  silent_.clear();
  addresses_.clear();
  complete(merged(errors_));
}

void Connector::try_again() {
  end_attempt();
  const Duration left = turn_end_ - monotonic_now();
  if (left <= Duration::zero()) return try_next();
  const SocketAddress& address = addresses_[current_];
  hold(UniqueFd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (fd() < 0) return attempt_failed(errno);
  if (::connect(fd(), address.data(), address.size()) == 0) return connected();
  if (errno == EAGAIN) return after(std::min(left, full_backlog_pause), &Connector::try_again);
  if (errno != EINPROGRESS) return attempt_failed(errno);
  after(left, &Connector::try_again);
  const int failed = watch(EPOLLOUT);
  if (failed != 0) attempt_failed(failed);
}

void Connector::on_ready(std::uint32_t) {
  const auto self = shared_from_this();
  const int error = error_of(fd());
  if (error != 0) return attempt_failed(error);
  connected();
}

void Connector::attempt_failed(int error) {
  end_attempt();
  note_failure(current_, error);
  silent_.erase(std::find(silent_.begin(), silent_.end(), current_));
  loop().post([weak = weak_from_this(), attempt = attempt_] {
    const auto self = weak.lock();
    if (self && self->attempt_ == attempt) self->try_next();
  });
}

void Connector::note_failure(std::size_t address, int error) {
  const SocketAddress& of = addresses_[address];
  std::string detail = to_string(of) + ": " + text_of_errno(error);
  if (const std::string note = note_on_loopback(address_.host, of); !note.empty())
    detail += " (" + note + ")";
  errors_.push_back({kind_of(error), std::move(detail)});
}

void Connector::connected() {
  if (is_connected_to_itself(fd())) {
    reset_on_close(fd());  // the port is the one at which a server is to listen
    return attempt_failed(ECONNREFUSED);
  }
  next_ = current_ + 1;
  complete(Connection::create(loop(), give_away(), addresses_[current_], options_.user_timeout));
}

}  // namespace muster::net
