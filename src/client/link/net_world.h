#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "client/link/credential.h"
#include "client/link/world.h"
#include "muster/io_thread.h"
#include "net/address/address.h"
#include "net/connector.h"
#include "net/loop.h"
#include "net/timer.h"

namespace muster::client {

/// The world as it is: an I/O thread and the network.
class NetWorld final : public World {
 public:
  /// credential  null: connections are plain
  NetWorld(std::shared_ptr<IoThread> io_thread, net::Address server,
           std::unique_ptr<Credential> credential);

  Instant now() const override;
  std::uint64_t random() override;
  void post(net::Task& task) noexcept override;
  void ring() noexcept override;
  bool on_io_thread() const override;
  bool would_deadlock() const override;
  bool run_here(const std::function<void()>& work) override;
  std::size_t send_now(int descriptor, std::string_view bytes) noexcept override;
  void close_inherited() override;

  std::uint64_t on_ring(std::function<void()> listener) override;
  void forget_ring(std::uint64_t number) override;
  std::uint64_t on_failure(std::function<void(std::string_view why)> listener) override;
  void forget_failure(std::uint64_t number) override;
  void begin_busy_poll(Duration wish) override;
  void end_busy_poll(Duration wish) noexcept override;

  void wake_at(Instant when, std::function<void()> work) override;
  void cancel_wake() noexcept override;

  void connect(std::function<void(Connected outcome)> handler) override;
  void cancel_connect() override;
  std::string awaited() const override;
  void mark_good() override;

  Instant next_look_for_key() const override;
  bool has_newer_key() override;
  bool try_another_key() override;

 private:
  Connected secure(std::shared_ptr<net::Connection> connection);

  const std::shared_ptr<IoThread> io_thread_;
  net::Loop& loop_;
  const net::Address server_;
  const std::unique_ptr<Credential> credential_;
  std::shared_ptr<net::Connector> connector_;  ///< from the first attempt on
  net::Timer timer_;
};

}  // namespace muster::client
