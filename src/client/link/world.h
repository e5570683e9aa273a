#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"
#include "net/channel.h"
#include "net/connector.h"
#include "net/task.h"

namespace muster::client {

using base::Instant;

/// What a link needs of the machine that it runs on: time and dice, an I/O thread, and connections
/// to its server. An IoThread has all of it (net_world.h); tests have a world of their own.
class World {
 public:
  using Connected = std::variant<std::shared_ptr<net::Channel>, net::ConnectError>;

  World() = default;
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual Instant now() const = 0;
  virtual std::uint64_t random() = 0;

  // Any thread.

  /// Runs `task` on the I/O thread, in one of its next turns.
  virtual void post(net::Task& task) noexcept = 0;
  /// Runs what `on_ring` was given. Async-signal-safe.
  virtual void ring() noexcept = 0;
  virtual bool on_io_thread() const = 0;
  /// Whether a blocking call of the caller would wait for the caller itself.
  virtual bool would_deadlock() const = 0;
  /// Runs `work` as the I/O thread does, if the caller may be that now.
  virtual bool run_here(const std::function<void()>& work) = 0;
  /// As `net::Connection::send_now`.
  virtual std::size_t send_now(int descriptor, std::string_view bytes) noexcept = 0;
  /// In a forked child: closes what it inherited.
  virtual void close_inherited() = 0;

  // On the I/O thread.

  /// Both return what their `forget` takes, never 0.
  virtual std::uint64_t on_ring(std::function<void()> listener) = 0;
  virtual void forget_ring(std::uint64_t number) = 0;
  /// Something was thrown on the I/O thread: see `net::Loop::on_failure`.
  virtual std::uint64_t on_failure(std::function<void(std::string_view why)> listener) = 0;
  virtual void forget_failure(std::uint64_t number) = 0;
  virtual void begin_busy_poll(Duration wish) = 0;
  virtual void end_busy_poll(Duration wish) noexcept = 0;

  /// Runs `work` at `when`, instead of what was to run before.
  virtual void wake_at(Instant when, std::function<void()> work) = 0;
  virtual void cancel_wake() noexcept = 0;

  /// As `net::Connector`.
  virtual void connect(std::function<void(Connected outcome)> handler) = 0;
  virtual void cancel_connect() = 0;
  virtual std::string awaited() const = 0;
  virtual void mark_good() = 0;

  /// When to ask `has_newer_key`, while a connection stands.
  virtual Instant next_look_for_key() const = 0;
  /// Whether there is a newer key than that of the connection that was marked as good.
  virtual bool has_newer_key() = 0;
  /// The server does not take the key of the last attempt.
  ///
  /// returns  whether the next one has another key
  virtual bool try_another_key() = 0;
};

}  // namespace muster::client
