#include "tls/certificate.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "tls/session.h"
#include "tls/table.h"

namespace muster::tls {
namespace {

/// A name with zero bytes, or of other letters than ASCII's, is none.
void append_name(std::string& to, const char* kind, const ASN1_STRING* name) {
  const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name));
  const std::string_view text(bytes, static_cast<std::size_t>(ASN1_STRING_length(name)));
  const auto is_plain = [](char letter) { return letter > ' ' && letter < 127; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain)) return;
  to += kind;
  to += text;
  to += '\0';
}

/// What was printed, cut to fit, with its end. Nothing if there was no memory to print to.
void take_printed(BIO* from, char* text, std::size_t text_size) {
  const int count = BIO_read(from, text, static_cast<int>(text_size) - 1);
  if (count > 0) text[count] = '\0';
}

/// A peer chooses its subject: control characters and letters beyond ASCII are escaped, and a long
/// subject is cut. A certificate without a subject (SPIFFE has none) is named by its serial number.
void print_name(BIO* to, const X509* certificate) {
  constexpr int shown_bytes_max = 100;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  if (X509_NAME_entry_count(subject) == 0) {
    BIO_puts(to, "with the serial number ");
    i2a_ASN1_INTEGER(to, X509_get0_serialNumber(certificate));
    return;
  }
  const Owned<BIO> whole(BIO_new(BIO_s_mem()));
  if (whole == nullptr) return;
  X509_NAME_print_ex(whole.get(), subject, 0, XN_FLAG_RFC2253);
  char shown[shown_bytes_max + 1] = "";
  take_printed(whole.get(), shown, sizeof shown);
  BIO_printf(to, "'%s%s'", shown, BIO_pending(whole.get()) > 0 ? "..." : "");
}

void print_dates(BIO* to, const X509* certificate) {
  BIO_puts(to, " (valid from ");
  ASN1_TIME_print_ex(to, X509_get0_notBefore(certificate), ASN1_DTFLGS_ISO8601);
  BIO_puts(to, " until ");
  ASN1_TIME_print_ex(to, X509_get0_notAfter(certificate), ASN1_DTFLGS_ISO8601);
  BIO_puts(to, ")");
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

}  // namespace

std::string names_of(const X509* certificate) {
  std::string names;
  int critical = -1;
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, nullptr));
  for (int index = 0; all != nullptr && index < sk_GENERAL_NAME_num(all); ++index) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, index);
    if (name->type == GEN_DNS) append_name(names, "dns:", name->d.dNSName);
    if (name->type == GEN_URI) append_name(names, "uri:", name->d.uniformResourceIdentifier);
  }
  GENERAL_NAMES_free(all);
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0)
    append_name(names, "cn:", X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  return names;
}

void tell_refused(X509_STORE_CTX* checked, bool is_server, char* why, std::size_t why_size) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  const X509* const certificate = X509_STORE_CTX_get_current_cert(checked);
  if (text == nullptr || certificate == nullptr) return;
  const bool is_issuer = X509_STORE_CTX_get_error_depth(checked) > 0;
  BIO_printf(text.get(), "TLS handshake: the %s's certificate%s ", is_server ? "client" : "server",
             is_issuer ? " is refused for its issuer" : "");
  print_name(text.get(), certificate);
  const int error = X509_STORE_CTX_get_error(checked);
  BIO_printf(text.get(), "%s: %s", is_issuer ? "" : " is refused",
             X509_verify_cert_error_string(error));
  if (error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID)
    print_dates(text.get(), certificate);
  take_printed(text.get(), why, why_size);
}

bool tell_refused_by_peer(const SSL* ssl, int reason, const char* during, char* why,
                          std::size_t why_size) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  const bool is_about_certificate =
      (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
      alert == SSL_AD_UNKNOWN_CA;
  const X509* const own = SSL_get_certificate(ssl);
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  if (!is_about_certificate || own == nullptr || text == nullptr) return false;
  const bool is_server = SSL_is_server(ssl) == 1;
  BIO_printf(text.get(), "%s: the %s refuses the %s's certificate ", during,
             is_server ? "client" : "server", is_server ? "server" : "client");
  print_name(text.get(), own);
  BIO_printf(text.get(), ": %s", SSL_alert_desc_string_long(alert));
  print_dates(text.get(), own);
  take_printed(text.get(), why, why_size);
  return true;
}

void certificates(const net::tls::Context* context, net::tls::TakeCertificate take, void* to) {
  const auto pass = [take, to](const X509* certificate, net::tls::CertificateOf of) {
    const Owned<BIO> printed(BIO_new(BIO_s_mem()));
    char name[128] = "";
    if (printed != nullptr) {
      print_name(printed.get(), certificate);
      take_printed(printed.get(), name, sizeof name);
    }
    const net::tls::CertificateDates dates{of, name, seconds_of(X509_get0_notBefore(certificate)),
                                           seconds_of(X509_get0_notAfter(certificate))};
    take(to, &dates);
  };
  SSL_CTX* const ssl = context->ssl.get();
  const X509* const own = SSL_CTX_get0_certificate(ssl);
  if (own != nullptr) pass(own, net::tls::CertificateOf::own);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(ssl, &chain);
  for (int index = 0; chain != nullptr && index < sk_X509_num(chain); ++index)
    pass(sk_X509_value(chain, index), net::tls::CertificateOf::chain);
  STACK_OF(X509)* const trusted = X509_STORE_get1_all_certs(SSL_CTX_get_cert_store(ssl));
  for (int index = 0; trusted != nullptr && index < sk_X509_num(trusted); ++index)
    pass(sk_X509_value(trusted, index), net::tls::CertificateOf::authority);
  sk_X509_pop_free(trusted, X509_free);
}

}  // namespace muster::tls
