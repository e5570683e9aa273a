// A client that speaks the protocol by hand, and does what no rank of the library does.
//
//     fault_raw_client HOST:PORT lost_count GROUP
//         joins as rank 1 of 2 and asks rank 0 for objects that are not next, and for those that
//         are
//     fault_raw_client HOST:PORT takes_nothing KEY
//         once it reads a line asks 40 times for the key's value, and reads no reply until the
//         server closes or its own input ends; tells when the connection has taken more
//     fault_raw_client HOST:PORT breaks KIND
//         sends a frame that is none, and tells what the server says to it
//     fault_raw_client HOST:PORT hoards COUNT
//         on so many connections asks for all that there is, and reads no reply
//     fault_raw_client HOST:PORT declares COUNT
//         on so many connections begins a frame as large as may be, and sends little of it, until
//         its own input ends
//
// Reported are lines of JSON, as by fault_worker.

#include "support/raw_client.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "faults/hoarder.h"
#include "faults/report.h"
#include "muster/codec_raw.h"
#include "wire/error_body.h"
#include "wire/reply.h"

namespace muster::faults {
namespace {

using nlohmann::json;
using test::RawClient;

constexpr int small_buffer_bytes = 16 * 1024;
constexpr int asked_count = 40;

/// What the reply says; `more` adds what its body holds.
template <class Body, class More>
void report(const RawClient::Frame& frame, const More& more) {
  json line{{"event", "reply"}};
  if (const auto error = wire::decode_error(frame.header.code, frame.body)) {
    line.update(described(*error));
  } else {
    line["code"] = "ok";
    more(line, wire::decode_body<Body>(frame.body).value());
  }
  say(std::move(line));
}

void lose_count(const std::string& address, std::string_view group) {
  RawClient client = RawClient::with_session(address);
  std::uint64_t epoch = 0;
  wire::Join join;
  join.group = group;
  join.rank = 1;
  join.world_size = 2;
  join.data_expiration = std::chrono::hours(1);
  report<wire::FormedReply>(client.call(join), [&](json& line, const wire::FormedReply& formed) {
    line["epoch"] = epoch = formed.epoch;
  });
  for (const std::uint64_t sequence : std::initializer_list<std::uint64_t>{5, 0, 0, 2, 1}) {
    report<wire::ReceiveReply>(
        client.call(wire::Receive{epoch, 0, 0, sequence, RawCodec::id}),
        [](json& line, const wire::ReceiveReply& object) { line["value"] = object.value; });
  }
}

sockaddr_in own_end(const RawClient& client) {
  sockaddr_in end{};
  socklen_t size = sizeof end;
  ::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&end), &size);
  return end;
}

sockaddr_in servers_end(const RawClient& client) {
  sockaddr_in end{};
  socklen_t size = sizeof end;
  ::getpeername(client.fd(), reinterpret_cast<sockaddr*>(&end), &size);
  return end;
}

/// As the server's log names the client.
std::string own_address(const RawClient& client) {
  const sockaddr_in own = own_end(client);
  char host[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &own.sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(own.sin_port));
}

/// What the kernel holds of a connection: at the server's end, which is asked of the kernel, and at
/// that of the client, who reads nothing.
class HeldByKernel {
 public:
  explicit HeldByKernel(const RawClient& client)
      : client_(client), kernel_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    const sockaddr_in own = own_end(client);
    const sockaddr_in server = servers_end(client);
    ask_.header.nlmsg_len = sizeof ask_;
    ask_.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    ask_.header.nlmsg_flags = NLM_F_REQUEST;
    ask_.request.sdiag_family = AF_INET;
    ask_.request.sdiag_protocol = IPPROTO_TCP;
    ask_.request.idiag_states = ~0U;
    inet_diag_sockid& id = ask_.request.id;
    id.idiag_sport = server.sin_port;
    id.idiag_dport = own.sin_port;
    id.idiag_src[0] = server.sin_addr.s_addr;
    id.idiag_dst[0] = own.sin_addr.s_addr;
    id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  }
  ~HeldByKernel() { ::close(kernel_); }
  HeldByKernel(const HeldByKernel&) = delete;
  HeldByKernel& operator=(const HeldByKernel&) = delete;

  /// Tells when it is more than ever: the server's socket has taken bytes, although nobody has read
  /// any. Its buffer grows when memory comes free, and what the client's end has dropped when
  /// memory was short comes again.
  void report_more() {
    int arrived_bytes = 0;
    if (::ioctl(client_.fd(), FIONREAD, &arrived_bytes) != 0) return;
    const std::int64_t bytes = arrived_bytes + servers_bytes();
    if (bytes <= most_bytes_) return;
    most_bytes_ = bytes;
    say({{"event", "took"}, {"bytes", bytes}});
  }

 private:
  /// Not yet acknowledged by the client's end; 0 when its socket is gone, or the kernel does not
  /// tell.
  std::int64_t servers_bytes() {
    struct {
      nlmsghdr header;
      inet_diag_msg message;
      char attributes[1024];
    } reply{};
    if (::send(kernel_, &ask_, sizeof ask_, 0) < 0) return 0;
    if (::recv(kernel_, &reply, sizeof reply, 0) < 0) return 0;
    const bool is_there = reply.header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
    return is_there ? reply.message.idiag_wqueue : 0;
  }

  const RawClient& client_;
  const int kernel_;
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } ask_{};
  std::int64_t most_bytes_ = 0;
};

/// It is heard all the time, so that what ends its connection is that it does not read.
void take_nothing(const std::string& address, std::string_view key) {
  RawClient client = RawClient::with_session(address, small_buffer_bytes);
  say({{"event", "connected"}, {"address", own_address(client)}});
  bool has_asked = false;
  HeldByKernel held(client);
  constexpr int heartbeat_ms = 50;
  for (std::uint64_t id = 1;; ++id) {
    pollfd ready[] = {{client.fd(), 0, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (!has_asked) ready[0].events = POLLIN;  // the answers to its heartbeats
    ::poll(ready, 2, heartbeat_ms);
    if (has_asked) held.report_more();
    if (!has_asked && ready[0].revents == POLLIN) {
      client.receive_frame();
      continue;
    }
    char line[64];
    if (ready[1].revents != 0 && ::read(STDIN_FILENO, line, sizeof line) <= 0) return;
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0 && !has_asked) {
      std::string requests;
      for (int count = 0; count < asked_count; ++count) {
        requests += client.request(wire::Get{key}, std::chrono::seconds(60));
      }
      client.send(requests);
      has_asked = true;
      say({{"event", "asked"}});
    }
    std::string heartbeat;
    wire::append_ids(heartbeat, wire::FrameType::heartbeat, id, {});
    client.send_some(heartbeat);
  }
}

std::string frame_of(wire::FrameType type, std::string_view body, std::uint64_t id = 1) {
  std::string bytes;
  wire::FrameHeader header;
  header.type = type;
  header.id = id;
  if (type == wire::FrameType::request) {
    header.code = static_cast<std::uint16_t>(wire::operation<wire::Set>);
  }
  wire::append_frame(bytes, header, body);
  return bytes;
}

/// The beginning of a request that declares a body of so many bytes.
std::string declaring(std::uint32_t body_bytes) {
  std::string bytes;
  wire::FrameHeader claim;
  claim.body_bytes = body_bytes;
  claim.code = static_cast<std::uint16_t>(wire::operation<wire::Set>);
  claim.id = 1;
  wire::begin_frame(bytes, claim);
  return bytes;
}

bool break_protocol(const std::string& address, const std::string& kind) {
  RawClient client(address);
  const std::uint32_t bytes_max = client.say_hello().limits.request_bytes_max();
  const std::string whole = client.request(wire::Set{"broken", "value", {}, false, false});
  std::string no_id = whole;
  no_id.replace(8, 8, 8, '\0');
  const std::map<std::string, std::string> kinds = {
      {"truncated", whole.substr(0, whole.size() - 1)},
      {"truncated_header", whole.substr(0, 7)},
      {"oversized", declaring(UINT32_MAX)},
      {"oversized_by_one", declaring(bytes_max + 1)},
      {"unknown_type", frame_of(static_cast<wire::FrameType>(99), {})},
      {"type_of_servers", frame_of(wire::FrameType::reply, {})},
      {"wrong_body", frame_of(wire::FrameType::request, "this is no set request")},
      {"wrong_list", frame_of(wire::FrameType::acknowledge, "\xff\xff\xff\xff", 0)},
      {"no_id", no_id},
  };
  const auto found = kinds.find(kind);
  if (found == kinds.end()) return false;
  json line{{"event", "closed"}, {"address", own_address(client)}};
  client.send(found->second);
  if (kind.starts_with("truncated")) {
    client.finish_sending();
  } else {
    line.update(described(client.receive_last_word()));
  }
  line["is_closed"] = client.is_closed();
  say(std::move(line));
  return true;
}

void declare(const std::string& address, int count) {
  std::vector<RawClient> clients;
  for (; count > 0; --count) {
    clients.emplace_back(address);
    const wire::ServerHello hello = clients.back().say_hello();
    clients.back().send(declaring(hello.limits.request_bytes_max()) + std::string(100, 'x'));
  }
  say({{"event", "declared"}});
  char line[64];
  while (::read(STDIN_FILENO, line, sizeof line) > 0) continue;
}

int run(std::string_view what, const std::string& address, std::string_view name) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (what == "lost_count") {
    lose_count(address, name);
  } else if (what == "takes_nothing") {
    take_nothing(address, name);
  } else if (what == "hoards") {
    hoard(address, std::stoi(std::string(name)));
  } else if (what == "declares") {
    declare(address, std::stoi(std::string(name)));
  } else if (what == "breaks") {
    return break_protocol(address, std::string(name)) ? 0 : 2;
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace muster::faults

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return muster::faults::run(argv[2], argv[1], argv[3]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
