#include <string>

#include <doctest/doctest.h>

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
