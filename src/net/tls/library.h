#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret/secret_bytes.h"
#include "muster/result.h"
#include "net/tls/table.h"

// TLS as the streams use it. OpenSSL is in libmuster-tls, which is loaded when the first context is
// made: whoever uses no credential needs none. A program that links the static form has it.

namespace muster::net::tls {

/// An own secret.
class Secret {
 public:
  unsigned char* data() { return bytes_.data(); }
  const unsigned char* data() const { return bytes_.data(); }

 private:
  base::SecretBytes bytes_{secret_bytes};
};

/// The functions of libmuster-tls.
///
/// errors   unsupported (`detail`: why it is not there, and where it was looked for)
/// threads  any
Result<const Table*> table();

/// A secret made of a key, for the purpose that `info` names.
///
/// errors  as `table`
Result<Secret> derive(std::string_view key, std::string_view info);

/// Files in the form PEM; an empty name: there is none.
struct CertificateFiles {
  std::string certificate;
  std::string key;
  std::string authorities;  ///< who is trusted
  bool trusts_system = false;
};

/// Until when a certificate is valid, as net::tls::CertificateDates, which lives no longer than a
/// call.
struct CertificateValidity {
  CertificateOf of;
  std::string name;
  std::int64_t not_before_s;
  std::int64_t not_after_s;
};

/// What the connections of one listener, or of one client, have in common. Their streams keep what
/// they need of it.
class TlsContext {
 public:
  /// Puts the secret of an id, and says whether somebody has that id. Both should take as long.
  using FindSecret = std::function<bool(std::string_view id, unsigned char* secret)>;

  /// find_secret  empty: clients have certificates
  /// errors       as `table`; invalid_argument (a file cannot be used: `detail`),
  ///              resource_exhausted (there is no memory)
  static Result<std::shared_ptr<const TlsContext>> server(FindSecret find_secret,
                                                          const CertificateFiles& files);
  /// The one that was made last, if it is for the same secret and still used: a process with
  /// thousands of stores has one.
  static Result<std::shared_ptr<const TlsContext>> client(std::string_view id,
                                                          const Secret& secret);
  /// server_name  that the server's certificate must have
  static Result<std::shared_ptr<const TlsContext>> client(const std::string& server_name,
                                                          const CertificateFiles& files);

  /// The own certificate, its chain, and the authorities of the files.
  std::vector<CertificateValidity> certificates() const;

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  explicit TlsContext(const Table& table) : table_(table) {}

  bool is_for(std::string_view id, const Secret& secret) const;

  const Table& table_;
  FindSecret find_secret_;
  Context* context_ = nullptr;
  bool is_client_ = false;
  std::string id_;  ///< of a client with a secret
  Secret secret_;
};

/// TLS of one connection, without its socket.
class TlsSession {
 public:
  /// null: there is no memory
  static std::unique_ptr<TlsSession> create(std::shared_ptr<const TlsContext> context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// See Table. What is for the other side is appended to `out`.
  Read read(std::string_view came, char* plain, std::size_t plain_size, std::string& out);
  bool write(std::string_view plain, std::string& out);
  void end(std::string& out);

  /// Empty: it has shown no secret.
  std::string peer_id() const;
  std::vector<std::string> peer_names() const;
  std::string failure() const;
  /// Of one that has failed before it has heard anything.
  Trouble trouble() const { return context_->table_.trouble(session_); }
  bool is_client() const { return context_->is_client_; }

 private:
  TlsSession(std::shared_ptr<const TlsContext> context, Session* session);

  const std::shared_ptr<const TlsContext> context_;
  Session* const session_;
};

}  // namespace muster::net::tls
