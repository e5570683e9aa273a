#pragma once

#include <memory>
#include <string>

#include "support/temporary_folder.h"

namespace muster::test {

/// Where a certificate and its key are, in the form PEM.
struct CertificateFile {
  std::string certificate;
  std::string key;
};

/// An authority of a test, and those that it has signed, in a folder that goes with it.
class Authority {
 public:
  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Its own certificate.
  const std::string& path() const { return path_; }
  /// names  as subject alternative names: "DNS:host" or "IP:127.0.0.1", several by commas
  CertificateFile sign(const std::string& names);

 private:
  struct Pair;

  TemporaryFolder folder_;
  std::string path_ = folder_ / "authority.pem";
  std::unique_ptr<Pair> own_;
  int signed_count_ = 0;
};

}  // namespace muster::test
