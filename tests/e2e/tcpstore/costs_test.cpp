#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>

#include <doctest/doctest.h>

#include "base/little_endian.h"
#include "e2e/tcpstore/client.h"
#include "support/await.h"

// What clients of TCPStore cost musterd: processor time, as a ratio of two sizes, and segments.

namespace muster::test::tcpstore {
namespace {

using namespace std::chrono_literals;
using Cost = std::chrono::nanoseconds;

Cost cpu_time_of(const Process& process) {
  clockid_t clock{};
  REQUIRE(::clock_getcpuclockid(process.pid(), &clock) == 0);
  timespec time{};
  REQUIRE(::clock_gettime(clock, &time) == 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// The least of several: what other processes do makes it only longer.
template <class Call>
Cost cost_of(Daemon& daemon, const Call& call) {
  Cost least = Cost::max();
  for (int count = 0; count < 5; ++count) {
    const Cost before = cpu_time_of(daemon.process());
    call();
    least = std::min(least, cpu_time_of(daemon.process()) - before);
  }
  return least;
}

double ratio_of(Cost cost, Cost base) {
  return static_cast<double>(cost.count()) / static_cast<double>(std::max<Cost>(base, 1us).count());
}

void raise_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Keys many_keys(std::size_t count) {
  Keys keys;
  for (std::size_t index = 0; index < count; ++index) keys.push_back("/" + std::to_string(index));
  return keys;
}

Entries entries_of(const Keys& keys) {
  Entries entries;
  for (const std::string& key : keys) entries.emplace_back(key, std::string(64, 'v'));
  return entries;
}

/// As PyTorch's clients send what is long.
void send_in_pieces(Client& client, std::string_view bytes) {
  constexpr std::size_t piece_bytes = 1440;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    client.send(bytes.substr(0, piece_bytes));
  }
}

/// It takes some 20 ms. TCPStore's own server takes 8.6 s of a MULTI_SET of as many, since it
/// begins anew with each piece.
TEST_CASE("a request of 65,536 keys takes no seconds, in however many pieces it comes") {
  Daemon daemon;
  Client client(daemon.tcpstore());
  const auto check_cost = [&](const char* what, const auto& bytes_of, std::size_t answer_bytes) {
    constexpr std::size_t keys_count = 65'536;
    const std::string bytes = bytes_of(many_keys(keys_count));
    const Cost cost = cost_of(daemon, [&] {
      send_in_pieces(client, bytes);
      client.receive(answer_bytes == 8 ? 8 * keys_count + 64 * keys_count : answer_bytes);
      client.flush();
    });
    CAPTURE(std::string(what));
    CHECK(cost < 3s);
  };
  check_cost(
      "MULTI_SET", [](const Keys& keys) { return multi_set(entries_of(keys)); }, 0);
  check_cost(
      "MULTI_GET", [](const Keys& keys) { return multi_get(keys); }, 8);
  check_cost(
      "CHECK", [](const Keys& keys) { return check(keys); }, 1);
  check_cost(
      "WAIT", [](const Keys& keys) { return wait(keys); }, 1);
}

TEST_CASE("a request costs the same beside many connections that are idle") {
  raise_descriptors();
  Daemon daemon;
  Client client(daemon.tcpstore());
  const auto cost = [&] {
    return cost_of(daemon, [&] {
      for (int count = 0; count < 500; ++count) client.flush();
    });
  };
  const Cost alone = cost();
  std::deque<Client> idle;
  for (int count = 0; count < 2000; ++count) idle.emplace_back(daemon.tcpstore());
  const double ratio = ratio_of(cost(), alone);
  CHECK(ratio < 3);
  MESSAGE("beside 2,000 connections: ", ratio);
}

TEST_CASE("to cancel a wait, or to go with one, costs the same beside many waits of others") {
  Daemon daemon;
  Client client(daemon.tcpstore());
  const auto cost = [&] {
    return cost_of(daemon, [&] {
      for (int count = 0; count < 300; ++count) {
        CHECK(client.ask(wait({"/mine"}) + cancel_wait, 1) == wait_cancelled);
      }
      for (int count = 0; count < 30; ++count) Client(daemon.tcpstore()).send(wait({"/mine"}));
      client.flush();
    });
  };
  const Cost alone = cost();
  std::deque<Client> others;
  for (int count = 0; count < 100; ++count) {
    Client& other = others.emplace_back(daemon.tcpstore());
    std::string bytes;
    for (int index = 0; index < 1000; ++index) {
      bytes += wait({"/" + std::to_string(count) + "/" + std::to_string(index)});
    }
    other.send(bytes);
    other.flush();
  }
  const double ratio = ratio_of(cost(), alone);
  CHECK(ratio < 4);
  MESSAGE("beside 100,000 waits: ", ratio);
}

/// A list is asked for by a byte: those of one client that is gone would take the server an hour.
TEST_CASE("nothing is listed for clients that are gone") {
  Daemon daemon;
  Client client(daemon.tcpstore());
  client.send(multi_set(entries_of(many_keys(16'384))));
  client.flush();
  std::string lists;
  for (int count = 0; count < 30'000; ++count) lists += list_keys;
  for (int count = 0; count < 30; ++count) Client(daemon.tcpstore()).send(lists);
  const auto is_at_rest = [&daemon] {
    const Cost before = cpu_time_of(daemon.process());
    let_pass(200ms);
    return cpu_time_of(daemon.process()) - before < 50ms;
  };
  CHECK(holds_soon(is_at_rest));
}

TEST_CASE("the replies to what came together leave together") {
  Daemon daemon;
  Client client(daemon.tcpstore());
  client.ask(set("/a", "value") + ping(1), 4);
  const auto segments_count = [&client] {
    std::array<char, 256> info{};  // Linux's tcp_info, of which the C library lacks the end
    constexpr std::size_t data_segments_in_at = 152;
    socklen_t size = info.size();
    REQUIRE(::getsockopt(client.fd(), IPPROTO_TCP, TCP_INFO, info.data(), &size) == 0);
    REQUIRE(size >= data_segments_in_at + 4);
    return base::from_little_endian<std::uint32_t>(info.data() + data_segments_in_at);
  };
  std::string said;
  std::string expected;
  for (int count = 0; count < 100; ++count) {
    said += get("/a") + multi_get({"/a", "/b"}) + ping(5);
    expected += text("value") + text("value") + text("") + number(5, 4);
  }
  REQUIRE(said.size() < 16'000);  // it is read at once
  const auto before = segments_count();
  CHECK(client.ask(said, expected.size()) == expected);
  CHECK(segments_count() - before <= 2);
}

}  // namespace
}  // namespace muster::test::tcpstore
