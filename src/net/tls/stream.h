#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/channel.h"
#include "net/loop.h"
#include "net/owner_call.h"
#include "net/timer.h"
#include "net/tls/encryption.h"

namespace muster::net::tls {

/// A channel whose bytes go through another one, encrypted. What is to be sent waits in clear, by
/// reference if it came so, until the other channel has room: a flush makes as few records as it
/// can. Is held by a shared pointer, and used on the I/O thread only.
///
/// An end without TLS's own one is taken as the end of any connection: it is no goodbye.
class TlsStream final : public Channel,
                        private ChannelOwner,
                        public std::enable_shared_from_this<TlsStream> {
 public:
  /// under  not started yet, unless it is taken over
  TlsStream(Loop& loop, std::shared_ptr<Channel> under, std::unique_ptr<TlsSession> session)
      : loop_(loop), under_(std::move(under)), tls_(loop, std::move(session)) {}
  ~TlsStream() override {
    if (state_ != State::closed) close();
  }

  /// Instead of `start`: the other channel is open, and `came` is what its owner has been told of.
  /// Not within a call of that owner.
  void take_over(ChannelOwner& owner, std::string_view came);

  void send(std::string_view bytes) override;
  void send(SharedBytes bytes) override;
  void flush() override;

  void read_into(std::span<char> room) override { room_ = room; }
  void pause_reading() override;
  void resume_reading() override;
  void read_now() override;

  std::uint64_t held_bytes() const override;
  std::uint64_t own_bytes() const override;

  void close() override;
  void close_after_flush(Duration at_most) override;
  bool is_open() const override { return state_ == State::open; }
  bool is_lingering() const override;
  void set_user_timeout(Duration user_timeout) override { under_->set_user_timeout(user_timeout); }
  std::string peer() const override { return under_->peer(); }

  /// Who the peer is, once it is established.
  const Encryption& tls() const { return tls_; }

 private:
  enum class State : std::uint8_t { fresh, open, failing, lingering, closed };
  friend class OwnerCall<TlsStream>;

  void begin() override;
  void received(std::string_view bytes) override;
  void closed(CloseCause cause, std::string detail) override;
  void drained() override;
  std::size_t readable_bytes() override;

  void take(std::string_view came);
  std::string_view take_some(std::string_view came);
  void deliver();
  bool has_undelivered() const { return !rest_.empty() || tls_.is_record_cut(); }
  void pass_on();
  void count();
  void fail(CloseCause cause, std::string detail);
  void let_go();

  Loop& loop_;
  const std::shared_ptr<Channel> under_;
  Encryption tls_;
  State state_ = State::fresh;
  std::string rest_;            ///< that has come, and is not decrypted yet
  std::size_t kept_bytes_ = 0;  ///< of `rest_`, as the owner knows it
  std::span<char> room_;
  std::size_t granted_bytes_ = 0;  ///< that the owner reads, and has not been given yet
  std::unique_ptr<Timer> linger_;
  Duration linger_at_most_{};
  bool paused_ = false;
  bool in_callback_ = false;
};

}  // namespace muster::net::tls
