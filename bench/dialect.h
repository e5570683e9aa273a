#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::bench {

/// The servers that are compared.
enum class Kind {
  echo,
  muster,
  muster_tcpstore,  ///< its port for programs that use TCPStore
  redis,
  memcached,
  tcpstore,        ///< of PyTorch 1
  tcpstore_libuv,  ///< of a newer one
  etcd
};

/// Whether its clients are those of TCPStore.
inline bool speaks_tcpstore(Kind kind) {
  return kind == Kind::tcpstore || kind == Kind::tcpstore_libuv || kind == Kind::muster_tcpstore;
}

std::string_view name_of(Kind kind);

/// One connection's half of a protocol: how an operation is written, and where a reply ends.
/// Replies are recognised and skipped, not kept, so that the client costs as little as it can.
///
/// `append_` functions return false where the server has no such operation.
class Dialect {
 public:
  virtual ~Dialect() = default;

  /// What a new connection says before anything else, and how long the answer to it is.
  virtual std::string greeting() const { return {}; }
  virtual std::size_t greeting_reply_bytes() const { return 0; }
  /// A piece of that answer has come.
  virtual void greeted(std::string_view) {}
  /// The next connection is a new one of the same session, if the protocol has sessions.
  virtual void begin_again() {}

  /// time_to_live_ms  0: for good
  virtual bool append_set(std::string& out, std::string_view key, std::string_view value,
                          std::int64_t time_to_live_ms) = 0;
  /// value_bytes  of the value that is there; only the echo server has to be told
  virtual bool append_get(std::string& out, std::string_view key, std::size_t value_bytes) = 0;
  virtual bool append_add(std::string& out, std::string_view key) = 0;
  /// `count` keys, made by `nth_key`.
  virtual bool append_multi_get(std::string& out, int count, std::size_t value_bytes) = 0;
  /// Waits for what `append_wake` with the same key does.
  virtual bool append_wait(std::string& out, std::string_view key, std::size_t value_bytes) = 0;
  virtual bool append_wake(std::string& out, std::string_view key, std::string_view value) = 0;
  /// Asks how many keys there are; `number()` is then the answer.
  virtual bool append_count(std::string&) { return false; }
  virtual void append_goodbye(std::string&) {}

  /// Takes what was received, and returns how many replies have ended in it.
  /// Throws std::runtime_error at an answer that is an error.
  std::size_t take(std::string_view bytes);
  std::int64_t number() const { return number_; }

 protected:
  /// A part of a reply whose length is known from its first bytes.
  struct Piece {
    std::size_t bytes = 0;  ///< with those that tell; 0: more of these must come
    bool ends_reply = true;
    bool is_wanted = false;  ///< `whole` is to be called with all of it
  };
  virtual Piece piece_of(std::string_view begin) = 0;
  virtual void whole(std::string_view) {}
  void set_number(std::int64_t number) { number_ = number; }

 private:
  std::string begun_;     ///< of a piece whose length is not known yet, or that is wanted
  std::size_t skip_ = 0;  ///< bytes of the current piece that are still to come
  bool ends_reply_ = false;
  std::int64_t number_ = 0;
};

std::unique_ptr<Dialect> make_dialect(Kind kind);
std::unique_ptr<Dialect> make_echo_dialect();
std::unique_ptr<Dialect> make_redis_dialect();
std::unique_ptr<Dialect> make_memcached_dialect();
/// Of PyTorch 1, whose numbers differ from those of later ones.
std::unique_ptr<Dialect> make_tcpstore_dialect();
std::unique_ptr<Dialect> make_newest_tcpstore_dialect();
std::unique_ptr<Dialect> make_etcd_dialect();

/// Of the protocols that are text.
inline constexpr std::string_view line_end = "\r\n";

/// A key of 16 bytes.
std::string nth_key(std::int64_t number);

/// A number as it lies in memory, as the protocols of this machine's order want it.
template <class Number>
void append_number(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace muster::bench
