#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "auth/admission.h"
#include "base/secret/secret_file.h"
#include "base/time.h"
#include "muster/result.h"
#include "net/address/unit.h"
#include "net/tls/library.h"
#include "server/door/expiry.h"
#include "server/door/roll.h"

namespace muster::server {

/// Where the credentials are, and what the server shows of itself.
struct DoorOptions {
  std::string file;  ///< empty: the text is given
  std::string text;  ///< of the credentials; wiped when it was read
  std::string server_name;
  net::tls::CertificateFiles certificates;
  bool speaks_tls = true;  ///< else all come by Unix sockets, where the system knows them
};

/// What a peer has proved: that it has the key with an id, that it is a process of a user, or that
/// it has a certificate with these names.
struct KeyShown {
  std::string id;
};
using Proved = std::variant<KeyShown, net::SystemUser, auth::CertificateNames>;

/// Who has come in.
struct Visitor {
  std::shared_ptr<const auth::Grant> grant;
  std::uint64_t key = 0;  ///< the id of the key that it has proved; 0: it has none
  net::UnitId unit;       ///< whose shares it counts for
  std::string unit_name;
};

/// How two versions of the credentials differ.
struct RollChange {
  using Grants = std::shared_ptr<const auth::Grant>;

  std::vector<auth::Identity> added;
  std::vector<auth::Identity> removed;
  std::size_t identities_count = 0;                ///< that are known now
  std::vector<std::pair<Grants, Grants>> regrant;  ///< older and newer; null: it is gone
  std::string certificate;                         ///< of the server, for the log; empty: none
};

/// For the log: who was added and who was removed.
std::string summary_of(const RollChange& change);

/// Who may come in: the credentials as they were read last, and TLS that asks for them. Used on the
/// I/O thread, but for `read`.
class Door {
 public:
  /// What was read at one time.
  struct Version {
    std::shared_ptr<const Roll> roll;
    std::shared_ptr<const net::tls::TlsContext> tls;
    base::FileStamps stamps;
  };
  /// What a client has named when it came, and whether anybody has it.
  struct KeyNamed {
    auth::KeyId id;
    bool is_one = false;                  ///< it has the form of an id
    std::optional<std::size_t> position;  ///< nothing: nobody has this key
  };

  /// errors  as `read`
  static Result<std::shared_ptr<Door>> open(DoorOptions options);

  /// Reads the credentials, if there is a file of them, and the certificates again. On any thread.
  ///
  /// errors  invalid_argument (what is wrong with them), too_large, unavailable (a file cannot be
  ///         read), unsupported (TLS is not there, or nothing can be read again)
  Result<Version> read() const;
  RollChange change_to(Version version);
  /// Whether one of the files is another one than that which was read last, and all have been as
  /// they are for a second.
  bool has_changed(base::Instant now);
  /// What to log of certificates and credentials that expire.
  ExpiryWarnings::Lines expiry_warnings();
  /// As `ExpiryWarnings::expiry`, now.
  std::optional<auth::UtcTime> expiry(Validity::Of of) const;

  /// Null: it speaks no TLS.
  const std::shared_ptr<const net::tls::TlsContext>& tls() const { return tls_; }
  const DoorOptions& options() const { return options_; }
  std::size_t identities_count() const { return known_->roll->identities_count(); }
  /// To which all identities belong; empty: to several.
  std::string only_tenant() const { return known_->roll->credentials().only_tenant(); }

  std::variant<Visitor, auth::Refused> admit(const Proved& proved, const auth::Asked& asked);
  /// By the last handshake that was begun; afterwards nothing was.
  std::optional<KeyNamed> take_named() { return std::exchange(known_->named, std::nullopt); }
  /// For the log: why the handshake that has named this key has failed.
  std::string why_refused(const KeyNamed& named) const;

 private:
  using Grant = std::shared_ptr<const auth::Grant>;
  /// What a context looks keys up in, also when it outlives the door.
  struct Known {
    std::shared_ptr<const Roll> roll;
    std::optional<KeyNamed> named;

    bool find_secret(std::string_view id, unsigned char* secret);
  };
  /// A user with his group, or the names of a certificate: by which line he came in depends on all
  /// lines, so each of them has a grant of his own.
  using Holder = std::variant<std::pair<std::uint32_t, std::uint32_t>, std::string>;
  struct Issued {
    Proved proved;
    Grant grant;
  };

  explicit Door(DoorOptions options) : options_(std::move(options)) {}

  base::FileStamps stamps() const;
  Result<std::shared_ptr<const Roll>> read_roll(std::string_view text) const;
  Result<std::shared_ptr<const Roll>> read_roll_file() const;
  Result<Version> with_tls(std::shared_ptr<const Roll> roll, base::FileStamps stamps) const;
  std::variant<Grant, auth::Refused> find(const Proved& proved);
  const auth::Credential* look_up(const Proved& proved) const;
  Grant issue(Holder holder, const Proved& proved, const auth::Grant& granted);
  void take_keys(const Roll& newer, RollChange& change);
  void take_issued(RollChange& change);
  void drop_unused();
  std::vector<Validity> validities() const;
  std::uint64_t number_of(const auth::Identity& identity);

  DoorOptions options_;
  /// Of credentials that were given as a text. `known_` changes, and `read` runs on any thread.
  std::shared_ptr<const Roll> text_roll_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
  std::shared_ptr<const net::tls::TlsContext> tls_;
  std::vector<Grant> grants_;        ///< of the roll, by position
  std::map<Holder, Issued> issued_;  ///< to those without a key
  std::size_t issued_max_ = 0;       ///< beyond it the unused ones go
  std::map<auth::Identity, std::uint64_t> numbers_;
  std::uint64_t last_number_ = 0;
  base::FileStamps stamps_;       ///< that were read last
  base::FileStamps seen_stamps_;  ///< that were seen last
  base::Instant looked_{};
  ExpiryWarnings expiry_;
};

}  // namespace muster::server
