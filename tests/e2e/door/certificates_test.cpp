#include "support/certificates.h"

#include <string>

#include <doctest/doctest.h>

#include "support/door.h"

// Who is let in by a certificate.

namespace {

using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::net::tls::TlsContext;
using muster::test::Authority;
using muster::test::CertificateFile;
using muster::test::HeardLog;
using muster::test::hello_for;
using muster::test::must_fail;
using muster::test::number_of;
using muster::test::start_disturbed_server;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
namespace wire = muster::wire;

const std::string by_names =
    "certificate:head.example.org train-* all as=team/head\n"
    "certificate:*.example.org eval read as=team/node\n"
    "certificate:spiffe://example.org/job eval all as=team/job\n"
    "certificate:CN=somebody other all as=team/somebody\n";

struct WithCertificates {
  WithCertificates() : server(start()) {}

  Server start() {
    const CertificateFile own = authority.sign("DNS:server.example.org");
    ServerOptions options;
    options.credentials = by_names + "team/trainer " + trainer_key + " * all\n";
    options.certificate_file = own.certificate;
    options.certificate_key_file = own.key;
    options.client_authorities_file = authority.path();
    options.logger = log.logger();
    return start_disturbed_server(std::move(options));
  }
  TlsClient client(Authority& signer, const std::string& names) const {
    const CertificateFile own = signer.sign(names);
    return TlsClient(server.addresses().front(),
                     TlsContext::client("server.example.org",
                                        {own.certificate, own.key, authority.path(), false})
                         .value());
  }
  /// The status of the server's hello.
  std::uint16_t answer(const std::string& names, const std::string& name_space) {
    TlsClient made = client(authority, names);
    REQUIRE(made.begin());
    return made.say_hello(hello_for(name_space)).value().status;
  }

  Authority authority;
  HeardLog log;
  Server server;
};

TEST_CASE("a certificate that an authority has signed lets in by the name that counts most") {
  WithCertificates door;
  const auto denied = number_of(ErrorCode::permission_denied);
  CHECK(door.answer("DNS:head.example.org", "train-1") == 0);
  CHECK(door.log.has("admitted as identity team/head"));
  CHECK(door.answer("DNS:head.example.org", "eval") == denied);
  CHECK(door.answer("DNS:n1.example.org", "eval") == 0);
  CHECK(door.answer("DNS:n1.example.org,DNS:head.example.org", "train-1") == 0);
  CHECK(door.answer("URI:spiffe://example.org/job", "eval") == 0);
  CHECK(door.answer("DNS:a.n1.example.org", "other") == 0);  // by its common name
  CHECK(door.answer("DNS:a.n1.example.org", "eval") == denied);
}

TEST_CASE("a certificate of somebody else's authority, and none, end in the handshake") {
  WithCertificates door;
  Authority other;
  TlsClient stranger = door.client(other, "DNS:head.example.org");
  // Its side of the handshake is over before the server has looked at the certificate.
  if (stranger.begin()) CHECK_FALSE(stranger.say_hello(hello_for("train-1")).has_value());
  TlsClient bare(
      door.server.addresses().front(),
      TlsContext::client("server.example.org", {"", "", door.authority.path(), false}).value());
  if (bare.begin()) CHECK_FALSE(bare.say_hello(hello_for("train-1")).has_value());
  CHECK_FALSE(door.log.has("admitted as"));
}

TEST_CASE("keys and certificates let in side by side") {
  WithCertificates door;
  TlsClient client(door.server.addresses().front(), tls_context(trainer_key));
  REQUIRE(client.begin());
  CHECK(client.say_hello().value().status == 0);
}

TEST_CASE("a certificate that cannot be used refuses the start") {
  Authority authority;
  ServerOptions options;
  options.credentials = by_names;
  options.certificate_file = authority.path();  // without its key
  options.client_authorities_file = authority.path();
  CHECK(must_fail(Server::start(options)).code == ErrorCode::invalid_argument);
}

}  // namespace
