#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/connector.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/timer.h"
#include "net/tls/stream.h"

namespace muster::test {

/// A TCP port on loopback that speaks TLS with clients, and passes what they say on to a server
/// that speaks none.
class TlsRelay {
 public:
  struct Options {
    std::string server;                  ///< "127.0.0.1:port"
    std::vector<std::string> keys;       ///< in base64, of those who are let in
    std::string server_name;             ///< that keys are derived for
    net::tls::CertificateFiles files{};  ///< its own certificate, if it has one
  };
  explicit TlsRelay(Options options);
  ~TlsRelay();
  TlsRelay(const TlsRelay&) = delete;
  TlsRelay& operator=(const TlsRelay&) = delete;

  /// Where clients connect.
  const std::string& address() const { return address_; }
  /// From now on these are let in, and no others.
  void admit(const std::vector<std::string>& keys);
  /// The next handshake fails as one does whose bytes were damaged on their way.
  void refuse_next() { refuses_next_ = true; }

  /// Of the clients' connections so far: those that came, those whose client has shown its key, and
  /// those of them that ended in order, by TLS's own end.
  int came_count() const { return came_count_; }
  int established_count() const { return established_count_; }
  int ended_in_order_count() const { return ended_in_order_count_; }

  /// Ends every connection to clients by a FIN alone, as somebody on the way could.
  void truncate();

 private:
  struct Pair;
  using Secrets = std::map<std::string, net::tls::Secret>;

  void accepted(net::UniqueFd fd, const net::SocketAddress& peer);
  void heard(const std::shared_ptr<Pair>& pair, std::string_view bytes);
  void server_ended(const std::shared_ptr<Pair>& pair);
  void end(const std::shared_ptr<Pair>& pair, std::string_view why);

  const Options options_;
  std::string address_;
  mutable std::mutex mutex_;
  Secrets secrets_;
  std::shared_ptr<const net::tls::TlsContext> context_;
  net::Loop loop_;
  std::shared_ptr<net::Listener> listener_;
  std::vector<std::shared_ptr<Pair>> pairs_;
  std::atomic<bool> refuses_next_{false};
  std::atomic<int> came_count_{0};
  std::atomic<int> established_count_{0};
  std::atomic<int> ended_in_order_count_{0};
  std::thread thread_;
};

}  // namespace muster::test
