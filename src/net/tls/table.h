#pragma once

#include <cstddef>
#include <cstdint>

// What libmuster-tls does for whoever has loaded it. Plain types and functions: it may have been
// built by another compiler, and OpenSSL stays in it.

namespace muster::net::tls {

inline constexpr std::uint32_t table_version = 3;
inline constexpr std::size_t secret_bytes = 32;
inline constexpr std::size_t id_bytes_max = 64;
/// What one record carries at most.
inline constexpr std::size_t record_bytes_max = 16 * 1024;
/// What OpenSSL keeps for a session that is open and idle, and what has it, at most.
inline constexpr std::size_t session_bytes = 20 * 1024;

/// Takes bytes for the other side.
struct Sink {
  void (*append)(void* to, const char* bytes, std::size_t size);
  void* to;
};

/// A context: what all connections of a listener, or of a client, have in common.
struct Context;
/// TLS of one connection.
struct Session;

/// Files in the form PEM; null: there is none.
struct Certificates {
  const char* certificate_file;
  const char* key_file;
  const char* authorities_file;  ///< who is trusted; null: nobody, or whom the system trusts
  int trusts_system;
};

struct ServerContext {
  /// The secret of that id. Called on the thread of the connection.
  ///
  /// returns  0: nobody has this id
  int (*find_secret)(void* user, const unsigned char* id, std::size_t id_size,
                     unsigned char* secret);
  void* user;
  Certificates certificates;
};

struct ClientContext {
  const unsigned char* id;  ///< null: by a certificate alone
  std::size_t id_size;
  const unsigned char* secret;  ///< not copied: it stays there as long as the context's sessions
  Certificates certificates;
  const char* server_name;  ///< that its certificate must have; null with a secret
};

enum class Phase : int {
  handshaking,
  open,
  ended,   ///< the other side has said that nothing more comes
  failed,  ///< nothing of it counts any more; `sink` may have got an alert
};

/// What a session has failed of.
enum class Trouble : int {
  other,
  refused,    ///< the other side says so: it does not take who this side is
  untrusted,  ///< the other side has not shown that it is who it should be
  not_tls,    ///< what has come is no TLS
  unable,     ///< the other side says that it cannot go on, whoever this side is
};

/// What a context uses a certificate for.
enum class CertificateOf : int { own, chain, authority };

/// Until when a certificate is valid, in seconds since 1970.
struct CertificateDates {
  CertificateOf of;
  const char* name;  ///< "'CN=head.example.org'": its subject, else its serial number
  std::int64_t not_before_s;
  std::int64_t not_after_s;
};
using TakeCertificate = void (*)(void* to, const CertificateDates* dates);

struct Read {
  std::size_t taken;  ///< of what came
  std::size_t plain;  ///< that was put there
  Phase phase;
};

struct Table {
  std::uint32_t version;

  // `why` takes a text of at most `why_size` bytes with its end when null is returned.
  Context* (*make_server)(const ServerContext* options, char* why, std::size_t why_size);
  Context* (*make_client)(const ClientContext* options, char* why, std::size_t why_size);
  /// Sessions of it may live on.
  void (*free_context)(Context* context);

  /// returns  null: there is no memory
  Session* (*make_session)(Context* context);
  void (*free_session)(Session* session);
  /// Takes of what came as much as one piece of plain bytes needs. To be called until nothing is
  /// taken and nothing is put, or all is taken and less is put than had room; also before anything
  /// came, for a client's first bytes.
  Read (*read)(Session* session, const char* came, std::size_t came_size, char* plain,
               std::size_t plain_size, Sink sink);
  /// Makes one record of at most `record_bytes_max` bytes.
  ///
  /// returns  0: it is not open
  int (*write)(Session* session, const char* plain, std::size_t size, Sink sink);
  /// Says that nothing more comes.
  void (*end)(Session* session, Sink sink);

  /// Who the other side is, once it is open: the id of its secret, or the names in its certificate,
  /// each ended by a zero byte: "dns:NAME", "uri:NAME" and last "cn:NAME".
  ///
  /// returns  how many bytes that are, of which as many as fit were put
  std::size_t (*peer_id)(const Session* session, unsigned char* id, std::size_t size);
  std::size_t (*peer_names)(const Session* session, char* names, std::size_t size);
  /// Why it has failed, for the own log alone; "" before.
  const char* (*failure)(const Session* session);

  /// HKDF with SHA-256: `secret_bytes` of a key, for the purpose that `info` names.
  ///
  /// returns  0: it failed
  int (*derive)(const unsigned char* key, std::size_t key_size, const char* info,
                std::size_t info_size, unsigned char* secret);

  /// Of one that has failed before it has heard anything.
  Trouble (*trouble)(const Session* session);

  /// Calls `take`, which must not throw, for the own certificate of a context, for each one of its
  /// chain, and for each authority of its files.
  void (*certificates)(const Context* context, TakeCertificate take, void* to);
};

}  // namespace muster::net::tls

/// Of libmuster-tls. null: OpenSSL cannot be set up.
extern "C" const muster::net::tls::Table* muster_tls_table() __attribute__((weak));
