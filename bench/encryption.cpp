#include "encryption.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "auth/derivation.h"
#include "auth/key.h"
#include "support/process.h"

namespace muster::bench {
namespace {

constexpr std::size_t key_id_bytes = 8;
/// Known to everybody, as all of this is on loopback.
constexpr std::string_view key_text = "bXVzdGVyX2JlbmNoLCBrbm93biB0byBldmVyeWJvZHku";
constexpr std::string_view strangers_key_text = "bm9ib2R5IGhhcyB0aGlzIGtleSwgYnV0IGEgc3RyYW5nZXIu";

template <class T>
T must(Result<T> made) {
  if (!made) throw std::runtime_error(made.error().message());
  return *std::move(made);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
}

TlsContext client_of(std::string_view text) {
  const auth::Key key = must(auth::Key::read(text));
  const auto id = must(net::tls::derive(key.bytes(), auth::info_of_id("")));
  const auto secret = must(net::tls::derive(key.bytes(), auth::info_of_secret("")));
  const std::string_view name(reinterpret_cast<const char*>(id.data()), key_id_bytes);
  return must(net::tls::TlsContext::client(name, secret));
}

Encryption by_key(const Programs& programs) {
  const std::string path = programs.folder + "/credentials";
  write(path, "bench " + std::string(key_text) + " * all\n");
  return {{"--credentials", path}, client_of(key_text)};
}

struct Certificate {
  std::string file;
  std::string key;
};

Certificate made_certificate(const std::string& folder) {
  Certificate made{folder + "/certificate.pem", folder + "/key.pem"};
  if (std::filesystem::exists(made.file)) return made;
  test::Process::Options options;
  options.command = {"/usr/bin/env",
                     "openssl",
                     "req",
                     "-x509",
                     "-newkey",
                     "ec",
                     "-pkeyopt",
                     "ec_paramgen_curve:P-256",
                     "-nodes",
                     "-days",
                     "2",
                     "-subj",
                     "/CN=localhost",
                     "-addext",
                     "subjectAltName=DNS:localhost",
                     "-keyout",
                     made.key,
                     "-out",
                     made.file};
  test::Process openssl(options);
  const auto ended = openssl.wait(std::chrono::seconds(20));
  if (!ended.has_ended || !std::filesystem::exists(made.file)) {
    throw std::runtime_error("openssl makes no certificate");
  }
  return made;
}

TlsContext client_of(const Certificate& certificate) {
  net::tls::CertificateFiles files;
  files.authorities = certificate.file;
  return must(net::tls::TlsContext::client("localhost", files));
}

Encryption by_certificate(Kind kind, const Programs& programs, std::uint16_t port) {
  const Certificate certificate = made_certificate(programs.folder);
  if (kind == Kind::redis) {
    return {
        {"--port", "0", "--tls-port", std::to_string(port), "--tls-cert-file", certificate.file,
         "--tls-key-file", certificate.key, "--tls-ca-cert-file", certificate.file,
         "--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3", "--tls-session-caching", "no"},
        client_of(certificate)};
  }
  if (kind == Kind::etcd) {
    return {{"--cert-file", certificate.file, "--key-file", certificate.key},
            client_of(certificate)};
  }
  throw std::runtime_error(std::string(name_of(kind)) + " is not started with TLS here");
}

}  // namespace

Encryption make_encryption(Kind kind, const Programs& programs, std::uint16_t port) {
  if (kind == Kind::muster) return by_key(programs);
  return by_certificate(kind, programs, port);
}

namespace {

/// Hands what came to a session, until it has taken all.
void hand(net::tls::TlsSession& to, std::string& came, std::string& answer) {
  std::array<char, net::tls::record_bytes_max> plain;
  for (std::string_view left = came;;) {
    const net::tls::Read read = to.read(left, plain.data(), plain.size(), answer);
    left.remove_prefix(read.taken);
    if (read.phase == net::tls::Phase::failed) throw std::runtime_error(to.failure());
    if (read.taken == 0 && read.plain == 0) break;
  }
  came.clear();
}

}  // namespace

std::vector<Ends> make_ends(int count) {
  const net::tls::Secret secret = must(net::tls::derive(key_text, "a benchmark"));
  const auto find = [&secret](std::string_view, unsigned char* found) {
    std::copy_n(secret.data(), net::tls::secret_bytes, found);
    return true;
  };
  const TlsContext server = must(net::tls::TlsContext::server(find, {}));
  const TlsContext client = must(net::tls::TlsContext::client("everybody", secret));
  std::vector<Ends> all(static_cast<std::size_t>(count));
  for (Ends& ends : all) {
    ends.server = net::tls::TlsSession::create(server);
    ends.client = net::tls::TlsSession::create(client);
    if (!ends.server || !ends.client) throw std::bad_alloc();
    std::string to_client;
    std::string to_server;
    hand(*ends.client, to_client, to_server);  // begins
    while (!to_server.empty() || !to_client.empty()) {
      hand(*ends.server, to_server, to_client);
      hand(*ends.client, to_client, to_server);
    }
  }
  return all;
}

std::string first_flight(const TlsContext& context) { return Sealed(context).out; }

TlsContext make_stranger() { return client_of(strangers_key_text); }

Sealed::Sealed(const TlsContext& context) : session_(net::tls::TlsSession::create(context)) {
  if (session_ == nullptr) throw std::bad_alloc();
  std::string nothing;
  take({}, nothing);
}

void Sealed::take(std::string_view came, std::string& clear) {
  std::array<char, net::tls::record_bytes_max> plain;
  rest_ += came;
  std::string_view left = rest_;
  for (;;) {
    const net::tls::Read read = session_->read(left, plain.data(), plain.size(), out);
    phase_ = read.phase;
    left.remove_prefix(read.taken);
    clear.append(plain.data(), read.plain);
    if (phase_ == net::tls::Phase::failed) throw std::runtime_error(session_->failure());
    if (read.taken == 0 && read.plain == 0) break;
  }
  rest_.erase(0, rest_.size() - left.size());
}

void Sealed::seal(std::string& clear) {
  for (std::string_view left = clear; !left.empty();) {
    const std::size_t bytes = std::min(left.size(), net::tls::record_bytes_max);
    if (!session_->write(left.substr(0, bytes), out)) throw std::runtime_error("no TLS");
    left.remove_prefix(bytes);
  }
  clear.clear();
}

}  // namespace muster::bench
