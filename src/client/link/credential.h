#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret/secret_file.h"
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

/// How a store shows its server who it is, and that server itself: with a key or a certificate,
/// by TLS. A file is read anew when it has changed, so that a key can be exchanged while the store
/// goes on. On one thread at a time.
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

  /// For the next connection: of the newest key. A file that cannot be used any more is logged, and
  /// what was read of it before stays.
  const Context& refresh();

 private:
  enum class Kind { key_file, key_text, certificate };

  Credential(Kind kind, std::string server_name, const Handlers& handlers)
      : kind_(kind), server_name_(std::move(server_name)), handlers_(handlers) {}

  static Result<std::unique_ptr<Credential>> of_key(const StoreOptions& options,
                                                    const Handlers& handlers);
  static Result<std::unique_ptr<Credential>> of_certificate(const StoreOptions& options,
                                                            const net::Address& server,
                                                            const Handlers& handlers);

  struct Stamps {
    std::optional<base::FileStamp> first;
    std::optional<base::FileStamp> second;
    std::optional<base::FileStamp> third;
    friend bool operator==(const Stamps&, const Stamps&) = default;
  };
  Stamps stamps() const;
  Result<void> read();
  Result<Context> read_key(std::string_view text) const;

  const Kind kind_;
  /// Keys are derived for it, or the certificate must have it.
  const std::string server_name_;
  const Handlers handlers_;
  std::string path_;                      ///< of a key
  std::optional<base::SecretText> text_;  ///< in place of a file
  net::tls::CertificateFiles certificates_;
  Stamps stamps_;
  Context context_;
};

}  // namespace muster::client
