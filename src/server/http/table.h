#pragma once

#include <cstddef>
#include <cstdint>

// What libmuster-http does for whoever has loaded it. Plain types and functions: Boost and OpenSSL
// stay in it.

namespace muster::server::http {

inline constexpr std::uint32_t table_version = 3;

/// A text that belongs to the other side and is there as long as the call.
struct PlainText {
  const char* bytes;
  std::size_t size;
};

/// As Answer.
struct PlainAnswer {
  int status;
  PlainText type;
  PlainText body;
  PlainText content_policy;
  std::uint64_t goes_on_at;
};

/// Takes an answer, on the thread of whoever gives it.
struct AnswerSink {
  void (*take)(void* to, const PlainAnswer* answer);
  void* to;
};

struct PlainQuestion {
  PlainText path;
  PlainText query;
  PlainText accept;
  int right;
  std::uint64_t position;
};

struct PlainRoute {
  PlainText prefix;
  int needs;
  int goes_on;
  /// returns  0: it could not be answered
  int (*answer)(void* user, const PlainQuestion* question, AnswerSink sink);
  void* user;
};

struct PlainToken {
  PlainText name;
  int right;
  const unsigned char* digest;
};

/// In the form PEM; an empty certificate: there is no TLS.
struct PlainCertificates {
  PlainText certificate;
  PlainText key;
  PlainText authorities;
};

/// What connections may take.
struct Limits {
  std::uint32_t connections_max = 256;
  std::uint32_t connections_per_address_max = 64;  ///< an IPv6 address counts by its /64
  std::uint32_t head_bytes_max = 8192;
  std::uint32_t target_bytes_max = 4096;
  std::uint32_t head_ms = 10'000;   ///< for all of a request's head, with the handshake of TLS
  std::uint32_t idle_ms = 30'000;   ///< from one request to the next
  std::uint32_t write_ms = 30'000;  ///< for all of an answer
  std::uint32_t stall_ms = 10'000;  ///< that the server may not turn and is well
  std::uint32_t answer_ms = 5'000;  ///< that an answer may not be there yet
  // Of answers that go on.
  std::uint32_t streams_max = 64;
  std::uint32_t streams_per_address_max = 32;
  std::uint32_t stream_ms = 500;      ///< from one piece to the next
  std::uint32_t comment_ms = 15'000;  ///< without a piece, until a word shows that it goes on
  std::uint32_t stream_bytes_max = 32u << 20;  ///< of pieces that were not taken yet
};

struct PlainOptions {
  PlainText address;  ///< HOST:PORT
  /// How it may be called, beside loopback's names and its addresses.
  const PlainText* names;
  std::size_t names_count;
  /// Other machines may reach it although nobody is asked who he is.
  int allows_unauthenticated;
  PlainCertificates certificates;
  /// Whether only those with a token are answered.
  int asks_for_token;
  const PlainToken* tokens;
  std::size_t tokens_count;
  const PlainRoute* routes;
  std::size_t routes_count;
  Limits limits;

  // Called on the front's thread.

  void* user;
  /// How often the server has turned; it changes while the server is well.
  std::uint64_t (*turns)(void* user);
  void (*log)(void* user, int level, PlainText line);
};

enum class CertificatePart : int { none, certificate, key, authorities };

/// Why it does not start.
struct PlainFailure {
  int code;  ///< an ErrorCode
  int part;  ///< a CertificatePart: which of them is wrong
  char why[400];
};

enum class Phase : int { starting, serving, ending };

/// A front that serves, on a thread of its own.
struct FrontHandle;

struct Table {
  std::uint32_t version;

  /// returns  null: `failure` says why
  FrontHandle* (*start)(const PlainOptions* options, PlainFailure* failure);
  /// Closes all connections and ends its thread.
  void (*stop)(FrontHandle* front);
  /// Where it listens, "127.0.0.1:9400", with its end.
  const char* (*address)(const FrontHandle* front);
  std::uint16_t (*port)(const FrontHandle* front);
  /// reason  what /readyz says unless it serves
  void (*set_phase)(FrontHandle* front, int phase, PlainText reason);
  void (*set_tokens)(FrontHandle* front, const PlainToken* tokens, std::size_t count);
  /// For connections that are accepted from now on.
  ///
  /// returns  0: they cannot be used (`failure`), and nothing has changed
  int (*set_certificates)(FrontHandle* front, const PlainCertificates* certificates,
                          PlainFailure* failure);

  /// SHA-256.
  ///
  /// returns  0: it failed
  int (*digest)(PlainText bytes, unsigned char* digest);
};

}  // namespace muster::server::http

/// Of libmuster-http. null: OpenSSL cannot be set up.
extern "C" const muster::server::http::Table* muster_http_table();
