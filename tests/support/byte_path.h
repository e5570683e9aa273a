#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

namespace muster::test {

/// Somebody on the path between clients and a server, on loopback, who does with bytes what he
/// likes.
class BytePath {
 public:
  /// Who has sent the bytes.
  enum class From { client, server };
  /// What becomes of them.
  struct Passed {
    std::string to_server;
    std::string to_client;
    bool ends = false;  ///< then the connection, by a FIN to both sides
  };
  /// first  of this connection: 0; the next ones: how many bytes have come before from that side.
  /// Called on the thread of the path.
  using Meddle = std::function<Passed(From from, std::string_view bytes, std::size_t first)>;

  /// server  "127.0.0.1:port"; empty: there is none
  BytePath(const std::string& server, Meddle meddle);
  ~BytePath();
  BytePath(const BytePath&) = delete;
  BytePath& operator=(const BytePath&) = delete;

  /// Where clients connect.
  const std::string& address() const { return address_; }
  int connections_count() const { return connections_count_; }

 private:
  struct Connection;

  void run();
  void accept_one();
  /// false: it has ended
  bool take(Connection& connection, From from);

  const std::string server_;
  const Meddle meddle_;
  std::string address_;
  int listener_ = -1;
  int stop_pipe_[2] = {-1, -1};
  std::list<Connection> connections_;
  std::atomic<int> connections_count_{0};
  std::thread thread_;
};

/// As it came.
inline BytePath::Passed passed_on(BytePath::From from, std::string_view bytes) {
  if (from == BytePath::From::client) return {std::string(bytes), {}};
  return {{}, std::string(bytes)};
}

}  // namespace muster::test
