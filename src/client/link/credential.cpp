#include "client/link/credential.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "auth/credentials.h"
#include "auth/derivation.h"
#include "auth/key_ids.h"
#include "client/failure.h"

namespace muster::client {
namespace {

constexpr const char* path_variable = "MUSTER_CREDENTIAL_FILE";
constexpr const char* text_variable = "MUSTER_CREDENTIAL";
constexpr const char* name_variable = "MUSTER_SERVER_NAME";

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

base::SecretText secret_text(std::string_view text) {
  base::SecretText secret(text.size());
  text.copy(secret.data(), text.size());
  return secret;
}

/// The last one of its identity: a new key stands behind the old one.
///
/// errors  invalid_argument: there is no key, or keys of several identities
Result<const auth::Key*> newest_key(const auth::Credentials& credentials) {
  const auth::Credential* newest = nullptr;
  for (const auth::Credential& each : credentials.all()) {
    if (!std::holds_alternative<auth::Key>(each.proof)) continue;
    if (newest != nullptr && !(newest->grant.identity == each.grant.identity)) {
      return invalid_argument("lines " + std::to_string(newest->line) + " and " +
                              std::to_string(each.line) +
                              ": keys of two identities; a client has one, so remove the other");
    }
    newest = &each;
  }
  if (newest == nullptr) {
    return invalid_argument("it has no line with a key; `musterctl keygen` makes one");
  }
  return &std::get<auth::Key>(newest->proof);
}

/// What was wrong, behind where that was.
Error at(const std::string& where, Error error) {
  error.decided_by = "client";
  error.detail = where + ": " + error.detail;
  return error;
}

}  // namespace

KeySource key_source_of(const StoreOptions& options) {
  std::string path = options.credential_file;
  if (path.empty()) path = variable(path_variable);
  if (!path.empty()) return {std::move(path), {}};
  return {{}, variable(text_variable)};
}

std::string server_name_of(const StoreOptions& options) {
  return options.server_name.empty() ? std::string(variable(name_variable)) : options.server_name;
}

Result<std::unique_ptr<Credential>> Credential::of(const StoreOptions& options,
                                                   const net::Address& server,
                                                   const Handlers& handlers) {
  const bool has_certificate = !options.certificate_file.empty();
  if (has_certificate && !options.credential_file.empty()) {
    return invalid_argument("credential_file and certificate_file: a store has one of both");
  }
  if (!has_certificate &&
      !(options.certificate_key_file.empty() && options.authorities_file.empty())) {
    return invalid_argument(
        "certificate_key_file and authorities_file: they go with a certificate_file");
  }
  if (server.is_unix()) return std::unique_ptr<Credential>();
  auto made =
      has_certificate ? of_certificate(options, server, handlers) : of_key(options, handlers);
  if (!made || *made == nullptr) return made;
  const Stamps before = (*made)->stamps();
  if (const auto read = (*made)->read(); !read) return read.error();
  (*made)->stamps_ = before;
  return made;
}

Result<std::unique_ptr<Credential>> Credential::of_key(const StoreOptions& options,
                                                       const Handlers& handlers) {
  KeySource source = key_source_of(options);
  const bool is_file = !source.path.empty();
  if (!is_file && source.text.empty()) return std::unique_ptr<Credential>();
  std::unique_ptr<Credential> made(
      new Credential(is_file ? Kind::key_file : Kind::key_text, server_name_of(options), handlers));
  if (!is_file) made->text_.emplace(secret_text(source.text));
  made->path_ = std::move(source.path);
  return made;
}

Result<std::unique_ptr<Credential>> Credential::of_certificate(const StoreOptions& options,
                                                               const net::Address& server,
                                                               const Handlers& handlers) {
  std::string name = server_name_of(options);
  if (name.empty()) name = server.host.empty() ? "localhost" : server.host;
  std::unique_ptr<Credential> made(new Credential(Kind::certificate, std::move(name), handlers));
  made->certificates_ = {options.certificate_file, options.certificate_key_file,
                         options.authorities_file, options.authorities_file.empty()};
  return made;
}

Credential::Stamps Credential::stamps() const {
  const auto of = [](const std::string& path) {
    return path.empty() ? std::nullopt : base::stamp_of(path);
  };
  return {of(kind_ == Kind::certificate ? certificates_.certificate : path_), of(certificates_.key),
          of(certificates_.authorities)};
}

Result<void> Credential::read() {
  Result<Context> made = Context();
  switch (kind_) {
    case Kind::key_file: {
      const auto file = base::read_secret_file(path_, auth::credentials_bytes_max);
      if (!file) return at("the credential", file.error());
      made = read_key(file->text());
      if (!made) return at(path_, made.error());
      break;
    }
    case Kind::key_text:
      made = read_key(text_->text());
      if (!made) return at(text_variable, made.error());
      break;
    case Kind::certificate:
      made = net::tls::TlsContext::client(server_name_, certificates_);
      if (!made) return at("the certificate", made.error());
      break;
  }
  context_ = *std::move(made);
  return {};
}

Result<Credential::Context> Credential::read_key(std::string_view text) const {
  const auto credentials = auth::Credentials::read(text);
  if (!credentials) return credentials.error();
  const auto key = newest_key(*credentials);
  if (!key) return key.error();
  const std::string_view bytes = (*key)->bytes();
  const auto id = net::tls::derive(bytes, auth::info_of_id(server_name_));
  if (!id) return id.error();
  const auto secret = net::tls::derive(bytes, auth::info_of_secret(server_name_));
  if (!secret) return secret.error();
  constexpr std::size_t id_bytes = sizeof(auth::KeyId::bytes);
  return net::tls::TlsContext::client({reinterpret_cast<const char*>(id->data()), id_bytes},
                                      *secret);
}

const Credential::Context& Credential::refresh() {
  if (kind_ == Kind::key_text) return context_;
  const Stamps now = stamps();
  if (now == stamps_) return context_;
  stamps_ = now;
  if (const auto again = read(); !again) {
    handlers_.log(LogLevel::warning,
                  "what was read of a credential before is used on: " + again.error().detail);
  }
  return context_;
}

}  // namespace muster::client
