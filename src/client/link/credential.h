#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret/secret_file.h"
#include "base/time.h"
#include "client/handlers.h"
#include "muster/result.h"
#include "muster/store.h"
#include "net/address/address.h"
#include "net/tls/library.h"

namespace muster::client {

/// Where a store has its key from: a file, else a text; both empty: it has none.
struct KeySource {
  std::string path;
  std::string_view text;  ///< in the environment
};

/// Of the options, and of the environment where they say nothing.
KeySource key_source_of(const StoreOptions& options);
std::string server_name_of(const StoreOptions& options);
/// The same of a certificate; without `certificate` the store has none. The key's file belongs to
/// its certificate: both are of the options, or both of the environment.
net::tls::CertificateFiles certificates_of(const StoreOptions& options);

/// How a store shows its server who it is, and that server itself: with a key or a certificate,
/// by TLS. A file is read anew when it has changed, so that a key can be exchanged while the store
/// goes on: the newest key of the file is tried first, then the one before, then that with which
/// the session stands. On one thread at a time.
class Credential {
 public:
  using Context = std::shared_ptr<const net::tls::TlsContext>;

  /// Of the options, and of the environment where they say nothing.
  ///
  /// returns  null: connections are plain, since there is no credential, or the server is at a Unix
  ///          socket, where the system says who comes
  /// errors   invalid_argument (what is wrong with a file), unavailable (it cannot be read),
  ///          unsupported (there is no TLS here)
  static Result<std::unique_ptr<Credential>> of(const StoreOptions& options,
                                                const net::Address& server,
                                                const Handlers& handlers);

  /// For the next connection. A file that cannot be used any more is logged, and what was read of
  /// it before stays. Null: there is no memory.
  Context next();
  /// The connection that `next` was asked for last stands: the server takes its key.
  void mark_good();
  /// The server does not take the key that `next` gave last.
  ///
  /// returns  whether `next` gives another one
  bool try_another();
  /// Whether the newest key of the file is another one than that which was marked as good. Looks at
  /// the file in intervals, and reads it when it has changed and is so for one of them.
  bool has_newer(base::Instant now);
  base::Instant next_look() const { return next_look_; }

 private:
  enum class Kind { key_file, key_text, certificate };

  Credential(Kind kind, std::string server_name, const Handlers& handlers)
      : kind_(kind), server_name_(std::move(server_name)), handlers_(handlers) {}

  static Result<std::unique_ptr<Credential>> of_key(const StoreOptions& options,
                                                    const Handlers& handlers);
  static Result<std::unique_ptr<Credential>> of_certificate(const StoreOptions& options,
                                                            const net::Address& server,
                                                            net::tls::CertificateFiles files,
                                                            const Handlers& handlers);

  struct Key {
    std::string id;
    net::tls::Secret secret;
    bool is_of_file = true;  ///< else it was, and is that with which the session stands
  };
  base::FileStamps stamps() const;
  void refresh();
  Result<void> read();
  Result<void> read_keys(std::string_view text);

  const Kind kind_;
  /// Keys are derived for it, or the certificate must have it.
  const std::string server_name_;
  const Handlers handlers_;
  std::string path_;                      ///< of a key
  std::optional<base::SecretText> text_;  ///< in place of a file
  net::tls::CertificateFiles certificates_;
  base::FileStamps stamps_;       ///< that were read last
  base::FileStamps seen_stamps_;  ///< that were seen last
  base::Instant next_look_ = base::far_future;
  std::vector<Key> keys_;  ///< in the order in which they are tried
  std::size_t tried_ = 0;  ///< of `keys_`, by the next connection
  std::string shown_id_;   ///< by the last one
  std::string good_id_;    ///< of the key that was marked as good; empty: none yet
  bool is_told_ = false;   ///< that the newest key is not taken
  Context context_;        ///< of `shown_id_`, or of the certificate
};

}  // namespace muster::client
