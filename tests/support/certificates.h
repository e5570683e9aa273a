#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "support/temporary_folder.h"

namespace muster::test {

/// Where a certificate and its key are, in the form PEM.
struct CertificateFile {
  std::string certificate;
  std::string key;
};

/// When a certificate is valid, from now.
struct ValidFor {
  std::chrono::seconds from = -std::chrono::hours(1);
  std::chrono::seconds until = std::chrono::hours(30 * 24);
};

/// An authority of a test, and those that it has signed, in a folder that goes with it.
class Authority {
 public:
  explicit Authority(ValidFor valid = {}) : Authority(nullptr, valid) {}
  /// An intermediate one, which `root` has signed: it is in the files of those that it signs.
  explicit Authority(const Authority& root, ValidFor valid = {}) : Authority(&root, valid) {}
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Its own certificate.
  const std::string& path() const { return path_; }
  /// names  as subject alternative names: "DNS:host" or "IP:127.0.0.1", several by commas
  CertificateFile sign(const std::string& names, ValidFor valid = {},
                       const std::string& common_name = "somebody");

 private:
  struct Pair;

  Authority(const Authority* root, ValidFor valid);

  TemporaryFolder folder_;
  std::string path_ = folder_ / "authority.pem";
  std::unique_ptr<Pair> own_;
  bool is_intermediate_ = false;
  int signed_count_ = 0;
};

}  // namespace muster::test
