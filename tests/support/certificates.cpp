#include "support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace muster::test {
namespace {

void require(bool is_done) {
  if (!is_done) throw std::runtime_error("OpenSSL makes no certificate");
}

void add_extension(X509* to, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  require(extension != nullptr && X509_add_ext(to, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

template <class Write>
void write_file(const std::string& path, Write write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  require(file != nullptr);
  const bool is_written = write(file) == 1;
  require(std::fclose(file) == 0 && is_written);
}

}  // namespace

struct Authority::Pair {
  struct Free {
    void operator()(X509* made) const { X509_free(made); }
    void operator()(EVP_PKEY* made) const { EVP_PKEY_free(made); }
  };
  std::unique_ptr<EVP_PKEY, Free> key;
  std::unique_ptr<X509, Free> certificate;

  /// issuer  null: itself
  Pair(const std::string& name, long serial, const Pair* issuer, ValidFor valid)
      : key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", const_cast<char*>("P-256"))),
        certificate(X509_new()) {
    require(key != nullptr && certificate != nullptr);
    X509* const made = certificate.get();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), serial);
    X509_gmtime_adj(X509_getm_notBefore(made), valid.from.count());
    X509_gmtime_adj(X509_getm_notAfter(made), valid.until.count());
    require(X509_set_pubkey(made, key.get()) == 1);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(name.c_str());
    require(X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC, bytes, -1,
                                       -1, 0) == 1);
    const X509* const signer = issuer == nullptr ? made : issuer->certificate.get();
    require(X509_set_issuer_name(made, X509_get_subject_name(signer)) == 1);
  }
  void finish(const Pair& issuer) {
    require(X509_sign(certificate.get(), issuer.key.get(), EVP_sha256()) > 0);
  }
};

Authority::Authority(const Authority* root, ValidFor valid) : is_intermediate_(root != nullptr) {
  const Pair* const issuer = is_intermediate_ ? root->own_.get() : nullptr;
  own_ = std::make_unique<Pair>(is_intermediate_ ? "an intermediate" : "an authority", 1, issuer,
                                valid);
  X509* const own = own_->certificate.get();
  add_extension(own, is_intermediate_ ? issuer->certificate.get() : own, NID_basic_constraints,
                "critical,CA:TRUE");
  own_->finish(is_intermediate_ ? *issuer : *own_);
  write_file(path_, [own](std::FILE* file) { return PEM_write_X509(file, own); });
}

Authority::~Authority() = default;

CertificateFile Authority::sign(const std::string& names, ValidFor valid,
                                const std::string& common_name) {
  const std::string stem = folder_ / std::to_string(++signed_count_);
  Pair pair(common_name, 1 + signed_count_, own_.get(), valid);
  add_extension(pair.certificate.get(), own_->certificate.get(), NID_subject_alt_name, names);
  pair.finish(*own_);
  const CertificateFile file{stem + ".pem", stem + ".key"};
  write_file(file.certificate, [&](std::FILE* to) {
    const bool is_written = PEM_write_X509(to, pair.certificate.get()) == 1;
    if (!is_written || !is_intermediate_) return is_written ? 1 : 0;
    return PEM_write_X509(to, own_->certificate.get());
  });
  write_file(file.key, [&](std::FILE* to) {
    return PEM_write_PrivateKey(to, pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return file;
}

}  // namespace muster::test
