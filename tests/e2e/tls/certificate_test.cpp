#include <string>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/store.h"
#include "support/certificates.h"
#include "support/ranks.h"
#include "support/server.h"
#include "support/tls_relay.h"

// Stores with a certificate.

namespace muster::test {
namespace {

using namespace std::chrono_literals;

struct Certified {
  Authority authority;
  CertificateFile client = authority.sign("DNS:client.example.org");
  Server server = start_disturbed_server();

  TlsRelay::Options relay_with(const CertificateFile& own) const {
    return {
        server.addresses().front(), {}, {}, {own.certificate, own.key, authority.path(), false}};
  }
  StoreOptions options() const {
    StoreOptions options;
    options.certificate_file = client.certificate;
    options.certificate_key_file = client.key;
    options.authorities_file = authority.path();
    return options;
  }
};

TEST_CASE("a store with a certificate and a server with one know each other") {
  Certified certified;
  const TlsRelay relay(certified.relay_with(certified.authority.sign("IP:127.0.0.1")));
  auto store = must(Store::connect(relay.address(), certified.options(), 20s));
  CHECK(must(store.set("k", "v")));
  CHECK(must(store.get("k")) == "v");
}

TEST_CASE("the environment names the files where the program names no credential") {
  Certified certified;
  const TlsRelay relay(certified.relay_with(certified.authority.sign("IP:127.0.0.1")));
  const Variable certificate("MUSTER_CERTIFICATE_FILE", certified.client.certificate + "\n");
  const Variable key("MUSTER_CERTIFICATE_KEY_FILE", certified.client.key);
  const Variable authorities("MUSTER_AUTHORITIES_FILE", certified.authority.path());
  CHECK(must(must(Store::connect(relay.address(), {}, 20s)).set("k", "v")));
  StoreOptions options;
  options.credential_file = "/nowhere/key";
  CHECK(must_fail(Store::connect(relay.address(), options, 20s)).detail.find("/nowhere/key") !=
        std::string::npos);
  options = certified.options();
  options.authorities_file.clear();  // that of the environment
  CHECK(must(must(Store::connect(relay.address(), options, 20s)).set("k", "v")));
  options.certificate_key_file.clear();  // not that of the environment: it is of its certificate
  const Error error = must_fail(Store::connect(relay.address(), options, 20s));
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(error.detail.find(certified.client.certificate + ": ") != std::string::npos,
                error.detail);
}

TEST_CASE("an environment with a key and a certificate, or with a half of one, is refused") {
  Certified certified;
  const auto refusal = [&certified](const StoreOptions& options = {}) {
    const Error error =
        must_fail(Store::connect(certified.server.addresses().front(), options, 20s));
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.detail;
  };
  {
    const Variable authorities("MUSTER_AUTHORITIES_FILE", certified.authority.path());
    CHECK(refusal().find("MUSTER_AUTHORITIES_FILE") != std::string::npos);  // nothing is plain
  }
  const Variable certificate("MUSTER_CERTIFICATE_FILE", certified.client.certificate);
  const Variable line("MUSTER_CREDENTIAL", key_line("alice", 1));
  CHECK(refusal().find("MUSTER_CREDENTIAL and MUSTER_CERTIFICATE_FILE") != std::string::npos);
  const Variable path("MUSTER_CREDENTIAL_FILE", "/nowhere/key");
  CHECK(refusal().find("MUSTER_CREDENTIAL_FILE and MUSTER_CERTIFICATE_FILE") != std::string::npos);
}

TEST_CASE("the name that the server's certificate must have may be given") {
  Certified certified;
  const TlsRelay relay(certified.relay_with(certified.authority.sign("DNS:store.example.org")));
  StoreOptions options = certified.options();
  CHECK(must_fail(Store::connect(relay.address(), options, 60s)).code ==
        ErrorCode::permission_denied);
  options.server_name = "store.example.org";
  auto store = must(Store::connect(relay.address(), options, 20s));
  CHECK(must(store.set("k", "v")));
}

TEST_CASE("a server that another authority has signed is refused") {
  Certified certified;
  Authority other;
  const TlsRelay relay(certified.relay_with(other.sign("IP:127.0.0.1")));
  CHECK(must_fail(Store::connect(relay.address(), certified.options(), 60s)).code ==
        ErrorCode::permission_denied);
  StoreOptions options = certified.options();
  options.authorities_file.clear();  // the system's do not have it either
  CHECK(must_fail(Store::connect(relay.address(), options, 60s)).code ==
        ErrorCode::permission_denied);
}

TEST_CASE("a client that another authority has signed is refused") {
  Certified certified;
  Authority other;
  const TlsRelay relay(certified.relay_with(certified.authority.sign("IP:127.0.0.1")));
  const CertificateFile foreign = other.sign("DNS:client.example.org");
  StoreOptions options = certified.options();
  options.certificate_file = foreign.certificate;
  options.certificate_key_file = foreign.key;
  CHECK(must_fail(Store::connect(relay.address(), options, 60s)).code ==
        ErrorCode::permission_denied);
}

}  // namespace
}  // namespace muster::test
