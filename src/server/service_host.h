#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/listener.h"
#include "net/listening.h"
#include "net/loop.h"
#include "net/timer.h"
#include "server/service.h"
#include "server/settings.h"
#include "server/world.h"

namespace muster::server {

/// The world of a service that runs on an I/O thread: its loop, its listeners and its clock. Used
/// on that thread only.
class ServiceHost final : public World, public std::enable_shared_from_this<ServiceHost> {
 public:
  ServiceHost(net::Loop& loop, Settings settings);
  ~ServiceHost() override;

  /// A socket at which those come who use TCPStore.
  struct TcpStoreListening {
    net::Listening listening;
    std::size_t port;  ///< of the settings
  };
  void start(std::vector<net::Listening> listenings, std::vector<TcpStoreListening> of_tcpstore);
  Service& service() { return service_; }

  base::Instant now() const override;
  Duration worked() const override;
  net::TurnStats turn_stats() const override { return loop_.turn_stats(); }
  std::uint64_t turn() const override { return loop_.turn_number(); }
  void wake_at(base::Instant when) override;
  void wake_soon() override;
  void stop_listening() override;
  net::Loop* loop() override { return &loop_; }

 private:
  void listen(net::Listening listening, const Arrival& arrival);
  Arrival::Kind arrival_at(const net::Listening& listening) const;
  void tell_what_is_open(const std::vector<net::Listening>& listenings);
  void tell_of_tcpstore(const TcpStoreListening& open);

  net::Loop& loop_;
  net::Timer timer_;
  std::vector<std::shared_ptr<net::Listener>> listeners_;
  bool is_woken_soon_ = false;
  std::uint64_t failure_number_ = 0;
  Service service_;  ///< last: the others outlive it
};

}  // namespace muster::server
