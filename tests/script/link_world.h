#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "client/link/world.h"

// The world of a link as scripts imagine it: time that passes when a script says so, an I/O thread
// that is the script's own, and connections whose sockets take as many bytes as it says.

namespace muster::script {

class LinkWorld;

/// What happens in the world that a script wants to see.
class LinkWorldObserver {
 public:
  virtual void connecting() = 0;
  virtual void caller_wrote(int connection, bool is_open) = 0;
  virtual void arrived(int connection, std::string_view bytes) = 0;
  virtual void closed(int connection, bool when_sent) = 0;
  /// Nobody holds it any more.
  virtual void gone(int connection) = 0;

 protected:
  ~LinkWorldObserver() = default;
};

/// A connection; its number is also its descriptor.
class LinkChannel final : public net::Channel {
 public:
  LinkChannel(LinkWorld& world, int number) : world_(world), number_(number) {}
  ~LinkChannel() override;

  void send(std::string_view bytes) override;
  void send(net::SharedBytes bytes) override { send(bytes.view); }
  void flush() override;
  void read_into(std::span<char>) override {}
  void pause_reading() override {}
  void resume_reading() override {}
  void read_now() override {}
  void close() override { end(false); }
  void close_after_flush(Duration) override { end(true); }
  bool is_open() const override { return is_open_; }
  bool is_lingering() const override { return false; }
  int descriptor() const override { return number_; }
  std::string peer() const override { return {}; }

  // The other side.

  void receive(std::string_view bytes);
  void lose(net::CloseCause cause, std::string detail);

 private:
  void begin() override {}
  void end(bool when_sent);

  LinkWorld& world_;
  const int number_;
  std::string queue_;
  bool is_open_ = true;
};

/// The world lives in its link, and is told of by an observer that outlives it.
class LinkWorld final : public client::World {
 public:
  explicit LinkWorld(LinkWorldObserver& told) : observer(told) {}

  client::Instant now() const override { return time; }
  std::uint64_t random() override { return 1; }

  void post(net::Task& task) noexcept override { tasks_.push_back(&task); }
  void ring() noexcept override { is_rung_ = true; }
  bool on_io_thread() const override { return is_serving_; }
  bool would_deadlock() const override { return true; }  // there is no other thread to wait for
  bool run_here(const std::function<void()>&) override { return false; }
  std::size_t send_now(int descriptor, std::string_view bytes) noexcept override;
  void close_inherited() override {}

  std::uint64_t on_ring(std::function<void()> listener) override;
  void forget_ring(std::uint64_t number) override { ring_listeners_.erase(number); }
  std::uint64_t on_failure(std::function<void(std::string_view why)> listener) override;
  void forget_failure(std::uint64_t number) override { failure_listeners_.erase(number); }
  void begin_busy_poll(Duration) override {}
  void end_busy_poll(Duration) noexcept override {}

  void wake_at(client::Instant when, std::function<void()> work) override;
  void cancel_wake() noexcept override { alarm_ = nullptr; }

  void connect(std::function<void(Connected outcome)> handler) override;
  void cancel_connect() override { connecting_ = nullptr; }
  std::string awaited() const override { return {}; }
  void mark_good() override {}

  client::Instant next_look_for_key() const override { return base::far_future; }
  bool has_newer_key() override { return false; }
  bool try_another_key() override { return false; }

  // What a script does.

  bool is_connecting() const { return connecting_ != nullptr; }
  /// The attempt comes to something.
  void connected();
  void not_connected(net::ConnectError error);
  std::shared_ptr<LinkChannel> channel(int number);
  /// Sockets take this many bytes from now on.
  void give_room(std::size_t bytes);
  /// The I/O thread does it when it is at nothing else.
  void soon(std::function<void()> work) { later_.push_back(std::move(work)); }
  /// As the I/O thread: `event`, and what was posted, until nothing is left.
  void serve(const std::function<void()>& event = nullptr);
  /// Until `end`, as an I/O thread does: nothing happens but at the time that was asked for.
  void pass_until(client::Instant end);
  std::size_t ring_listeners_count() const { return ring_listeners_.size(); }
  std::size_t failure_listeners_count() const { return failure_listeners_.size(); }
  std::size_t open_count() const;
  /// What of `bytes` the socket takes.
  std::size_t take_room(std::size_t bytes);

  LinkWorldObserver& observer;
  client::Instant time{std::chrono::seconds(1000)};

 private:
  std::deque<net::Task*> tasks_;
  std::deque<std::function<void()>> later_;
  bool is_rung_ = false;
  bool is_serving_ = false;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::function<void()>> ring_listeners_;
  std::map<std::uint64_t, std::function<void(std::string_view)>> failure_listeners_;
  client::Instant alarm_at_ = base::far_future;
  std::function<void()> alarm_;
  std::function<void(Connected)> connecting_;
  std::map<int, std::weak_ptr<LinkChannel>> channels_;
  int last_channel_ = 0;
  std::size_t room_ = ~std::size_t{0};
};

}  // namespace muster::script
