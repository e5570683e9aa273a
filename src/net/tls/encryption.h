#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/send_queue.h"
#include "net/tls/library.h"

namespace muster::net::tls {

/// The TLS of one stream, with what waits on its way out: first in clear, then encrypted.
class Encryption {
 public:
  Encryption(Loop& loop, std::unique_ptr<TlsSession> session)
      : loop_(loop), session_(std::move(session)), queue_(loop) {}

  /// See Table; what is for the other side is among `out`.
  Read read(std::string_view came, std::span<char> plain);
  void add(std::string_view bytes) { queue_.add(bytes); }
  void add(SharedBytes bytes) { queue_.add(std::move(bytes)); }
  /// Makes records until so many bytes are encrypted, if that can be.
  void encrypt(std::size_t encrypted_bytes);
  /// Says that nothing more comes.
  void end() { session_->end(out_); }

  /// For the other side.
  std::string_view out() const { return out_; }
  void drop_out();
  const SendQueue& queue() const { return queue_; }
  /// Gives memory back of which less than half is used: what is queued will wait.
  void fit() { queue_.fit(); }
  /// Nothing comes or goes any more: what TLS has kept is let go, though its stream may stay until
  /// what it has said has left. There is no `session` then.
  void let_go() {
    queue_.clear();
    session_.reset();
  }

  /// Whether there may be more of the record that was read last.
  bool is_record_cut() const { return is_record_cut_; }
  Phase phase() const { return phase_; }
  /// Whether both sides have shown who they are.
  bool is_established() const { return phase_ == Phase::open || phase_ == Phase::ended; }
  bool can_encrypt() const { return phase_ == Phase::open && queue_.bytes() > 0; }
  const TlsSession& session() const { return *session_; }

 private:
  std::string_view next_record(std::string& gathered) const;

  Loop& loop_;
  std::unique_ptr<TlsSession> session_;
  Phase phase_ = Phase::handshaking;
  bool is_record_cut_ = false;
  SendQueue queue_;
  std::string out_;  ///< stays for a moment: its room is one that another stream has just used
};

}  // namespace muster::net::tls
