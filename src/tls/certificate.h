#pragma once

#include <openssl/ssl.h>

#include <string>

#include <openssl/x509.h>

#include "net/tls/table.h"

namespace muster::tls {

/// The alternative names and the common name, each ended by a zero byte, as Table::peer_names.
std::string names_of(const X509* certificate);

/// Why this side refuses the certificate that `checked` has stopped at, by OpenSSL's callback: it
/// throws nothing. Without memory `why` stays as it is.
void tell_refused(X509_STORE_CTX* checked, bool is_server, char* why, std::size_t why_size);
/// The same where the other side has refused this side's certificate by an alert.
///
/// returns  whether `reason`, of an error of OpenSSL, is such an alert, and this side has shown one
bool tell_refused_by_peer(const SSL* ssl, int reason, const char* during, char* why,
                          std::size_t why_size);

void certificates(const net::tls::Context* context, net::tls::TakeCertificate take, void* to);

}  // namespace muster::tls
