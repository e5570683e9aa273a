#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "auth/derivation.h"
#include "auth/key.h"
#include "net/tls/library.h"
#include "support/raw_client.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace muster::test {

/// What a client names that has that key, in base64.
inline std::string id_of(std::string_view key_text, std::string_view server_name = {}) {
  const auth::Key key = auth::Key::read(key_text).value();
  const auto id = net::tls::derive(key.bytes(), auth::info_of_id(server_name));
  return std::string(reinterpret_cast<const char*>(id.value().data()), 8);
}

/// What it shows that it has.
inline net::tls::Secret secret_of(std::string_view key_text, std::string_view server_name = {}) {
  const auth::Key key = auth::Key::read(key_text).value();
  return net::tls::derive(key.bytes(), auth::info_of_secret(server_name)).value();
}

inline std::shared_ptr<const net::tls::TlsContext> tls_context(std::string_view key_text,
                                                               std::string_view server_name = {}) {
  return net::tls::TlsContext::client(id_of(key_text, server_name),
                                      secret_of(key_text, server_name))
      .value();
}

/// A socket that speaks the protocol by hand over TLS, or breaks it.
class TlsClient {
 public:
  TlsClient(const std::string& address, std::shared_ptr<const net::tls::TlsContext> context,
            const std::string& from = {})
      : raw_(address, 0, from), session_(net::tls::TlsSession::create(std::move(context))) {}

  RawClient& raw() { return raw_; }

  /// The first bytes of the handshake, which are the caller's to send.
  std::string first_flight() {
    read({});
    return std::exchange(out_, {});
  }

  /// Answers what the server says until the handshake is over.
  ///
  /// returns  false: it has failed, or the server has closed
  bool shake_hands() {
    while (phase_ == net::tls::Phase::handshaking) {
      const std::string came = raw_.receive_some();
      if (came.empty()) return false;
      took_ += came;
      read(came);
      if (phase_ == net::tls::Phase::failed) return false;
    }
    // What is the client's is sent with its first words.
    return true;
  }
  bool begin() {
    raw_.send(first_flight());
    return shake_hands();
  }

  void send(std::string_view plain) { raw_.send(encrypted(plain)); }
  /// With what the handshake still has to say.
  std::string encrypted(std::string_view plain) {
    if (!session_->write(plain, out_)) throw std::runtime_error("TLS is not open");
    return std::exchange(out_, {});
  }

  /// Exactly `count` bytes; fewer when the other side has ended.
  std::string receive(std::size_t count) {
    while (plain_.size() < count && phase_ == net::tls::Phase::open) {
      const std::string came = raw_.receive_some();
      if (came.empty()) break;
      took_ += came;
      read(came);
    }
    const std::string first = plain_.substr(0, count);
    plain_.erase(0, first.size());
    return first;
  }

  /// nothing: the server has ended before one came
  std::optional<wire::ServerHello> say_hello(const wire::ClientHello& hello = {}) {
    std::string bytes;
    wire::append_client_hello(bytes, hello);
    send(bytes);
    const auto answer = wire::decode_server_hello(receive(wire::server_hello_bytes));
    if (!answer) return std::nullopt;
    if (answer->status == 0 && !answer->resumed) {
      std::string echo;
      wire::append_echo(echo, answer->token);
      send(echo);
    }
    return *answer;
  }
  /// Sends a request and returns the code of its reply; other frames before it are dropped.
  std::uint16_t call(wire::RequestBody body) {
    send(raw_.request(std::move(body)));
    for (;;) {
      const wire::FrameHeader header = receive_frame();
      if (header.type == wire::FrameType::reply) return header.code;
    }
  }
  wire::FrameHeader receive_frame() {
    std::string bytes = receive(wire::frame_header_bytes);
    if (bytes.size() < wire::frame_header_bytes) throw std::runtime_error("closed before a frame");
    std::uint32_t body_bytes = 0;
    bytes.copy(reinterpret_cast<char*>(&body_bytes), sizeof(body_bytes));
    bytes += receive(body_bytes);
    const auto frame = wire::cut_frame(bytes, UINT32_MAX);
    if (!frame.has_value() || !*frame) throw std::runtime_error("closed within a frame");
    return (*frame)->header;
  }

  std::string failure() const { return session_->failure(); }
  /// All that the server has sent, encrypted.
  const std::string& took() const { return took_; }
  /// Whether the server ends the connection; what still comes before is dropped.
  bool is_closed() { return raw_.is_closed(); }

 private:
  void read(std::string_view came) {
    for (;;) {
      char bytes[net::tls::record_bytes_max];
      const net::tls::Read done = session_->read(came, bytes, sizeof bytes, out_);
      came.remove_prefix(done.taken);
      plain_.append(bytes, done.plain);
      phase_ = done.phase;
      const bool is_over = phase_ == net::tls::Phase::failed || phase_ == net::tls::Phase::ended;
      if (is_over || (done.plain == 0 && done.taken == 0)) return;
    }
  }

  RawClient raw_;
  std::unique_ptr<net::tls::TlsSession> session_;
  net::tls::Phase phase_ = net::tls::Phase::handshaking;
  std::string out_;
  std::string plain_;
  std::string took_;
};

}  // namespace muster::test
