#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::auth {

/// The names in a certificate that has been verified, each as it stands there.
struct CertificateNames {
  std::vector<std::string> dns;  ///< subject alternative names, of these two kinds
  std::vector<std::string> uris;
  std::string common_name;  ///< of the subject; empty: it has none
};

/// Which certificates a credential is for, by one of their names.
struct CertificatePattern {
  enum class Kind { dns, uri, common_name };

  Kind kind = Kind::dns;
  bool has_any_label = false;  ///< one label comes before `name`, which begins with a dot
  std::string name;            ///< of `dns`: in small letters

  friend bool operator==(const CertificatePattern&, const CertificatePattern&) = default;
};

/// Reads `CN=` and a common name, a URI (it has a colon), or else a DNS name. Common and DNS names
/// may begin with `*.`, which stands for one label.
std::optional<CertificatePattern> read_certificate_pattern(std::string_view text);

/// As `read_certificate_pattern` reads it.
std::string to_string(const CertificatePattern& pattern);

/// The patterns that fit these names, the one that counts most first: of subject alternative names
/// before the common name, whole names before those that begin with `*.`, then as they stand in the
/// certificate.
std::vector<CertificatePattern> patterns_of(const CertificateNames& names);

}  // namespace muster::auth
