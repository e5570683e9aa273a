// A TCP proxy between one rank and the server that does harm when it is told to.
//
//     fault_proxy HOST:PORT     of the server; prints the port it listens on, then reads commands
//
// Commands, one a line, each answered by a line `done`; an argument is a number:
//
//     pass                  passes everything on again, at once
//     delay MS              what comes is passed on so much later
//     trickle MS            single bytes, one each MS
//     hold                  what comes waits, ends and connections too, until `pass`
//     dead up|down|both     what comes in that direction is lost from now on, ends included; other
//                           connections begin only when `up` lives
//     refuse                closes what connects
//     cut up|down BYTES     so many bytes of the next piece in that direction pass, then all ends
//     flip up|down BIT      of the next piece in that direction this bit is another one; of a short
//                           piece that one which the number leaves
//     accepted              is answered by how many connections there have been
//     reset                 all connections end with RST on both sides
//
// One thread polls. Each direction of a connection is a Pump: a queue of pieces with the time at
// which each may go on. What is lost is never sent later: for TCP a connection that lost something
// is dead, so it stays dead after `pass`; the client has to see to it.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace muster::faults {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum class Direction { up, down };

struct Piece {
  Clock::time_point due;
  std::string bytes;  ///< empty: the end
};

struct Pump {
  Direction direction = Direction::up;
  int from = -1;
  int to = -1;
  std::deque<Piece> pieces;
  Clock::time_point free_at{};  ///< of a trickle: when the next byte may go
  bool has_ended = false;       ///< nothing more comes
  bool has_lost = false;        ///< nothing more passes
};

struct Connection {
  Pump up;
  Pump down;
};

struct Harm {
  milliseconds delay{0};
  milliseconds trickle{0};
  bool up_is_dead = false;
  bool down_is_dead = false;
  bool refuses = false;
  bool holds = false;
  std::optional<Direction> cut;
  std::size_t cut_after_bytes = 0;
  std::optional<Direction> flip;
  std::size_t flipped_bit = 0;
};

sockaddr_in address_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1))));
  return address;
}

void prepare(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

class Proxy {
 public:
  explicit Proxy(const std::string& server) : server_(address_of(server)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own = address_of("127.0.0.1:0");
    socklen_t size = sizeof own;
    auto* const generic = reinterpret_cast<sockaddr*>(&own);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      std::_Exit(1);
    }
    say("listening on 127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
  }

  void run();

 private:
  static void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  /// Returns false at the end of the commands.
  bool read_commands();
  /// Returns the answer.
  std::string obey(const std::string& line);
  void accept_one();
  void take(Connection& connection, Pump& pump);
  /// Passes on what is due; returns false when the connection is over.
  bool pass(Pump& pump);
  bool is_dead(Direction direction) const {
    return direction == Direction::up ? harm_.up_is_dead : harm_.down_is_dead;
  }
  void end(Connection& connection);
  void reset_all();
  int wait_ms() const;

  sockaddr_in server_;
  int listener_ = -1;
  Harm harm_;
  std::list<Connection> connections_;
  std::string commands_;
  int accepted_count_ = 0;
};

bool Proxy::read_commands() {
  char buffer[512];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got <= 0) return false;
  commands_.append(buffer, static_cast<std::size_t>(got));
  for (std::size_t end; (end = commands_.find('\n')) != std::string::npos;) {
    say(obey(commands_.substr(0, end)));
    commands_.erase(0, end + 1);
  }
  return true;
}

std::string Proxy::obey(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  std::string which;
  int number = 0;
  words >> command;
  if (command == "pass") harm_ = {};
  if (command == "delay" && words >> number) harm_.delay = milliseconds(number);
  if (command == "trickle" && words >> number) harm_.trickle = milliseconds(number);
  if (command == "dead" && words >> which) {
    harm_.up_is_dead = which != "down";
    harm_.down_is_dead = which != "up";
  }
  if (command == "hold") harm_.holds = true;
  if (command == "refuse") harm_.refuses = true;
  if (command == "cut" && words >> which >> number) {
    harm_.cut = which == "up" ? Direction::up : Direction::down;
    harm_.cut_after_bytes = static_cast<std::size_t>(number);
  }
  if (command == "flip" && words >> which >> number) {
    harm_.flip = which == "up" ? Direction::up : Direction::down;
    harm_.flipped_bit = static_cast<std::size_t>(number);
  }
  if (command == "reset") reset_all();
  if (command == "accepted") return std::to_string(accepted_count_);
  return "done";
}

void Proxy::accept_one() {
  if (harm_.up_is_dead) return;  // it stays in the backlog: the client sees a connection, no more
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&server_);
  if (harm_.refuses || ::connect(server, generic, sizeof server_) != 0) {
    ::close(server);
    ::close(client);
    return;
  }
  prepare(client);
  prepare(server);
  ++accepted_count_;
  Connection& connection = connections_.emplace_back();
  connection.up.from = connection.down.to = client;
  connection.up.to = connection.down.from = server;
  connection.down.direction = Direction::down;
}

void Proxy::take(Connection& connection, Pump& pump) {
  char buffer[65536];
  const ssize_t got = ::recv(pump.from, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::string bytes(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  pump.has_ended = bytes.empty();
  if (is_dead(pump.direction)) pump.has_lost = true;
  if (pump.has_lost) return;
  if (harm_.cut == pump.direction && !bytes.empty()) {
    bytes.resize(std::min(bytes.size(), harm_.cut_after_bytes));
    ::send(pump.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    harm_.cut.reset();
    connection.up.has_ended = connection.down.has_ended = true;
    connection.up.has_lost = connection.down.has_lost = true;
    return;
  }
  if (harm_.flip == pump.direction && !bytes.empty()) {
    const std::size_t bit = harm_.flipped_bit % (8 * bytes.size());
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    harm_.flip.reset();
  }
  pump.pieces.push_back({Clock::now() + harm_.delay, std::move(bytes)});
}

bool Proxy::pass(Pump& pump) {
  if (harm_.holds) return true;
  const auto now = Clock::now();
  while (!pump.pieces.empty() && pump.pieces.front().due <= now && pump.free_at <= now) {
    std::string& bytes = pump.pieces.front().bytes;
    if (is_dead(pump.direction)) {
      pump.has_lost = true;
      pump.pieces.clear();
      return true;
    }
    if (bytes.empty()) return false;
    const std::size_t count = harm_.trickle.count() > 0 ? 1 : bytes.size();
    const ssize_t sent = ::send(pump.to, bytes.data(), count, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    bytes.erase(0, static_cast<std::size_t>(sent));
    if (bytes.empty()) pump.pieces.pop_front();
    if (harm_.trickle.count() > 0) pump.free_at = now + harm_.trickle;
  }
  return true;
}

void Proxy::end(Connection& connection) {
  ::close(connection.up.from);
  ::close(connection.up.to);
}

void Proxy::reset_all() {
  const linger at_once{1, 0};
  for (Connection& connection : connections_) {
    for (const int fd : {connection.up.from, connection.up.to}) {
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    end(connection);
  }
  connections_.clear();
}

int Proxy::wait_ms() const {
  auto next = Clock::now() + milliseconds(1000);
  if (harm_.holds) return 1000;
  for (const Connection& connection : connections_) {
    for (const Pump* pump : {&connection.up, &connection.down}) {
      if (pump->pieces.empty()) continue;
      next = std::min(next, std::max(pump->pieces.front().due, pump->free_at));
    }
  }
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
}

void Proxy::run() {
  for (;;) {
    std::vector<pollfd> ready = {{STDIN_FILENO, POLLIN, 0}};
    ready.push_back({harm_.up_is_dead || harm_.holds ? -1 : listener_, POLLIN, 0});
    for (const Connection& connection : connections_) {
      for (const Pump* pump : {&connection.up, &connection.down}) {
        ready.push_back({pump->has_ended || harm_.holds ? -1 : pump->from, POLLIN, 0});
      }
    }
    ::poll(ready.data(), ready.size(), wait_ms());
    std::size_t index = 2;
    for (auto at = connections_.begin(); at != connections_.end();) {
      for (Pump* pump : {&at->up, &at->down}) {
        if (ready[index++].revents != 0 && !pump->has_ended) take(*at, *pump);
      }
      const bool is_cut = at->up.has_ended && at->down.has_ended;
      const bool goes_on = !(is_cut && at->up.has_lost && at->down.has_lost);
      if (goes_on && pass(at->up) && pass(at->down)) {
        ++at;
      } else {
        end(*at);
        at = connections_.erase(at);
      }
    }
    if (ready[1].revents != 0) accept_one();
    if (ready[0].revents != 0 && !read_commands()) return;
  }
}

}  // namespace
}  // namespace muster::faults

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  if (count != 2) return 2;
  muster::faults::Proxy(arguments[1]).run();
}
