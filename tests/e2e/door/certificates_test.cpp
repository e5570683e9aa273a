#include "support/certificates.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "muster/store.h"
#include "support/await.h"
#include "support/door.h"

// Who is let in by a certificate.

namespace {

using namespace std::chrono_literals;
using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::Store;
using muster::StoreOptions;
using muster::net::tls::TlsContext;
using muster::test::Authority;
using muster::test::await;
using muster::test::CertificateFile;
using muster::test::HeardLog;
using muster::test::hello_for;
using muster::test::must_fail;
using muster::test::number_of;
using muster::test::start_disturbed_server;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
using muster::test::ValidFor;
namespace wire = muster::wire;

const std::string by_names =
    "certificate:head.example.org train-* all as=team/head\n"
    "certificate:*.example.org eval read as=team/node\n"
    "certificate:spiffe://example.org/job eval all as=team/job\n"
    "certificate:CN=somebody other all as=team/somebody\n";

struct WithCertificates {
  explicit WithCertificates(ValidFor valid = {}, const Authority* of_clients = nullptr)
      : own(authority.sign("DNS:server.example.org", valid, "own")),
        server(start((of_clients != nullptr ? *of_clients : authority).path())) {}

  Server start(const std::string& authorities) {
    ServerOptions options;
    options.credentials = by_names + "team/trainer " + trainer_key + " * all\n";
    options.certificate_file = own.certificate;
    options.certificate_key_file = own.key;
    options.client_authorities_file = authorities;
    options.logger = log.logger();
    return start_disturbed_server(std::move(options));
  }
  TlsClient client(Authority& signer, const std::string& names) const {
    const CertificateFile shown = signer.sign(names);
    return TlsClient(server.addresses().front(),
                     TlsContext::client("server.example.org",
                                        {shown.certificate, shown.key, authority.path(), false})
                         .value());
  }
  /// What a store is told that cannot connect.
  std::string refusal(Authority& signer, ValidFor valid = {}) const {
    const CertificateFile shown = signer.sign("DNS:head.example.org", valid);
    StoreOptions options;
    options.certificate_file = shown.certificate;
    options.certificate_key_file = shown.key;
    options.authorities_file = authority.path();
    options.server_name = "server.example.org";
    return must_fail(Store::connect(server.addresses().front(), options, 60s)).detail;
  }
  /// The status of the server's hello.
  std::uint16_t answer(const std::string& names, const std::string& name_space) {
    TlsClient made = client(authority, names);
    REQUIRE(made.begin());
    return made.say_hello(hello_for(name_space)).value().status;
  }

  Authority authority;
  CertificateFile own;
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

TEST_CASE("the log names the side whose certificate has expired, and its subject") {
  WithCertificates of_client;
  const std::string refused = of_client.refusal(of_client.authority, {-2h, -1h});
  CHECK_MESSAGE(refused.find("the server refuses the client's certificate 'CN=somebody': "
                             "certificate expired (valid from ") != refused.npos,
                refused);
  await([&] {
    return of_client.log.has(
        "TLS handshake: the client's certificate 'CN=somebody' is refused: "
        "certificate has expired (valid from ");
  });
  WithCertificates of_server({-2h, -1h});
  const std::string refusing = of_server.refusal(of_server.authority);
  CHECK_MESSAGE(refusing.find("the server's certificate 'CN=own' is refused: certificate has "
                              "expired (valid from ") != refusing.npos,
                refusing);
  await([&] {
    return of_server.log.has(
        "the client refuses the server's certificate 'CN=own': certificate "
        "expired (valid from ");
  });
  CHECK(of_server.log.has("the server's certificate 'CN=own' in " + of_server.own.certificate +
                          " expired at "));
}

TEST_CASE("the log names an issuer that has expired, and a certificate that is not valid yet") {
  Authority expired({-2h, -1h});
  WithCertificates door({}, &expired);
  door.refusal(expired);
  await([&] {
    return door.log.has(
        "the client's certificate is refused for its issuer 'CN=an authority': "
        "certificate has expired");
  });
  CHECK(door.log.has("the certificate of the client authority 'CN=an authority' in " +
                     expired.path() + " expired at "));
  WithCertificates other;
  other.refusal(other.authority, {1h, 2h});
  await([&] {
    return other.log.has(
        "the client's certificate 'CN=somebody' is refused: certificate is not "
        "yet valid (valid from ");
  });
}

TEST_CASE("the start warns of an intermediate certificate and a credential that expire soon") {
  Authority root;
  Authority intermediate(root, {-1h, 13 * 24h + 1h});
  const CertificateFile own = intermediate.sign("DNS:server.example.org", {1h, 400h * 24}, "own");
  HeardLog log;
  ServerOptions options;
  options.credentials = "team/guest " + trainer_key + " * all not-after=2021-01-31T00:00:00Z\n";
  options.certificate_file = own.certificate;
  options.certificate_key_file = own.key;
  options.client_authorities_file = root.path();
  options.logger = log.logger();
  const Server server = start_disturbed_server(std::move(options));
  await([&] {
    return log.has("the intermediate certificate of the server 'CN=an intermediate' in " +
                   own.certificate + " expires in 13 d");
  });
  CHECK(
      log.has("the server's certificate 'CN=own' in " + own.certificate + " is not valid before "));
  CHECK(log.has("the credential of team/guest in the credentials, line 1 expired at 2021-01-31"));
  CHECK_FALSE(log.has("the certificate of the client authority"));
  const std::string metrics = server.metrics().text();
  const std::string name = "\nmuster_certificate_expiry_seconds{kind=\"server\"} ";
  REQUIRE(metrics.find(name) != metrics.npos);
  const std::chrono::seconds expiry(std::stoll(metrics.substr(metrics.find(name) + name.size())));
  const auto left = expiry - std::chrono::system_clock::now().time_since_epoch();
  CHECK(left > 13 * 24h);  // of the intermediate one
  CHECK(left <= 13 * 24h + 1h);
  CHECK(metrics.find("muster_certificate_expiry_seconds{kind=\"client_authority\"} ") !=
        metrics.npos);
  CHECK(metrics.find("\nmuster_credential_expiry_seconds ") == metrics.npos);  // it is over
}

TEST_CASE(
    "a renewed certificate is used without being asked for, also without a credentials file") {
  WithCertificates door({-1h, 13 * 24h + 1h});
  await([&] { return door.log.has("'CN=own' in " + door.own.certificate + " expires in 13 d"); });
  const CertificateFile renewed = door.authority.sign("DNS:server.example.org", {}, "renewed");
  std::filesystem::rename(renewed.key, door.own.key);
  std::filesystem::rename(renewed.certificate, door.own.certificate);
  await([&] { return door.log.has("; the server's certificate 'CN=renewed' in "); });
  CHECK(door.answer("DNS:head.example.org", "train-1") == 0);
  Authority other;
  std::filesystem::copy_file(other.path(), door.authority.path() + ".new");
  std::filesystem::rename(door.authority.path() + ".new", door.authority.path());
  await([&] { return door.log.count("credentials were read: ") == 2; });
  const CertificateFile of_other = other.sign("DNS:head.example.org");
  TlsClient client(
      door.server.addresses().front(),
      TlsContext::client("server.example.org", {of_other.certificate, of_other.key, "", true})
          .value());
  CHECK_FALSE(client.begin());  // no system trusts the server's authority
}

TEST_CASE("a certificate without its key changes nothing, and the log names the file") {
  WithCertificates door;
  const CertificateFile renewed = door.authority.sign("DNS:server.example.org", {}, "renewed");
  std::filesystem::rename(renewed.certificate, door.own.certificate);
  await([&] { return door.log.has("the credentials stay as they were: " + door.own.key + ": "); });
  CHECK(door.answer("DNS:head.example.org", "train-1") == 0);
  std::filesystem::rename(renewed.key, door.own.key);
  await([&] { return door.log.has("'CN=renewed'"); });
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
