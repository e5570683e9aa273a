#include "client/link/credential.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "auth/credentials.h"
#include "auth/derivation.h"
#include "auth/key_ids.h"
#include "base/secret/unshown.h"
#include "client/failure.h"

namespace muster::client {
namespace {

constexpr const char* path_variable = "MUSTER_CREDENTIAL_FILE";
constexpr const char* text_variable = "MUSTER_CREDENTIAL";
constexpr const char* name_variable = "MUSTER_SERVER_NAME";
constexpr const char* certificate_variable = "MUSTER_CERTIFICATE_FILE";
constexpr const char* certificate_key_variable = "MUSTER_CERTIFICATE_KEY_FILE";
constexpr const char* authorities_variable = "MUSTER_AUTHORITIES_FILE";
constexpr Duration look_interval = std::chrono::milliseconds(500);

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

/// A path of the options, else of the environment.
std::string path_of(const std::string& given, const char* name) {
  return std::string(base::without_line_end(given.empty() ? variable(name) : given));
}

/// Whether a key stands where the option means another thing.
std::optional<Error> refuse_secrets(const StoreOptions& options) {
  using base::refuse_secret_path;
  std::optional<Error> refused =
      refuse_secret_path(options.credential_file.empty() ? path_variable : "credential_file",
                         key_source_of(options).path);
  if (!refused) {
    refused = base::refuse_secret(options.server_name.empty() ? name_variable : "server_name",
                                  server_name_of(options));
  }
  const auto refuse = [&refused](const char* option, const std::string& given, const char* name) {
    if (!refused) refused = refuse_secret_path(given.empty() ? name : option, path_of(given, name));
  };
  refuse("certificate_file", options.certificate_file, certificate_variable);
  refuse("certificate_key_file", options.certificate_key_file, certificate_key_variable);
  refuse("authorities_file", options.authorities_file, authorities_variable);
  return refused;
}

/// Of a key and a certificate a store has one, and the other files go with a certificate.
std::optional<Error> refuse_combination(const StoreOptions& options,
                                        const net::tls::CertificateFiles& files) {
  if (!options.certificate_file.empty() && !options.credential_file.empty()) {
    return invalid_argument("credential_file and certificate_file: a store has one of both");
  }
  const bool is_named = !options.certificate_file.empty() || !options.credential_file.empty();
  const KeySource key = key_source_of(options);
  const bool has_key = !key.path.empty() || !key.text.empty();
  if (!is_named && has_key && !files.certificate.empty()) {
    return invalid_argument(std::string(key.path.empty() ? text_variable : path_variable) +
                            " and " + certificate_variable +
                            ": a store has one of both; unset the other one");
  }
  const bool are_given = !options.certificate_key_file.empty() || !options.authorities_file.empty();
  const bool are_there = !files.key.empty() || !files.authorities.empty();
  if (files.certificate.empty() && (are_given || (are_there && !has_key))) {
    return invalid_argument(
        "certificate_key_file and authorities_file (MUSTER_CERTIFICATE_KEY_FILE, "
        "MUSTER_AUTHORITIES_FILE): they go with a certificate_file (MUSTER_CERTIFICATE_FILE)");
  }
  return std::nullopt;
}

base::SecretText secret_text(std::string_view text) {
  base::SecretText secret(text.size());
  text.copy(secret.data(), text.size());
  return secret;
}

/// The last one of its identity first: a new key stands behind the old one.
///
/// errors  invalid_argument: there is no key, or keys of several identities
Result<std::vector<const auth::Key*>> keys_of(const auth::Credentials& credentials) {
  std::vector<const auth::Key*> keys;
  const auth::Credential* newest = nullptr;
  for (const auth::Credential& each : credentials.all()) {
    if (!std::holds_alternative<auth::Key>(each.proof)) continue;
    if (newest != nullptr && !(newest->grant.identity == each.grant.identity)) {
      return invalid_argument("lines " + std::to_string(newest->line) + " and " +
                              std::to_string(each.line) +
                              ": keys of two identities; a client has one, so remove the other");
    }
    newest = &each;
    keys.insert(keys.begin(), &std::get<auth::Key>(each.proof));
  }
  if (keys.empty()) {
    return invalid_argument("it has no line with a key; `musterctl keygen` makes one");
  }
  return keys;
}

/// What was wrong, behind where that was.
Error at(const std::string& where, Error error) {
  error.decided_by = "client";
  error.detail = base::shown_unless_secret(where) + ": " + error.detail;
  return error;
}

}  // namespace

KeySource key_source_of(const StoreOptions& options) {
  std::string path(base::without_line_end(options.credential_file));
  if (path.empty()) path = base::without_line_end(variable(path_variable));
  if (!path.empty()) return {std::move(path), {}};
  return {{}, variable(text_variable)};
}

std::string server_name_of(const StoreOptions& options) {
  const std::string_view given = options.server_name;
  return std::string(base::without_line_end(given.empty() ? variable(name_variable) : given));
}

net::tls::CertificateFiles certificates_of(const StoreOptions& options) {
  net::tls::CertificateFiles files;
  if (options.certificate_file.empty() && !options.credential_file.empty()) return files;
  const bool is_given = !options.certificate_file.empty();
  files.certificate = path_of(options.certificate_file, certificate_variable);
  files.key = is_given ? options.certificate_key_file
                       : path_of(options.certificate_key_file, certificate_key_variable);
  files.authorities = path_of(options.authorities_file, authorities_variable);
  files.trusts_system = files.authorities.empty();
  return files;
}

Result<std::unique_ptr<Credential>> Credential::of(const StoreOptions& options,
                                                   const net::Address& server,
                                                   const Handlers& handlers) {
  if (auto refused = refuse_secrets(options)) return *std::move(refused);
  net::tls::CertificateFiles files = certificates_of(options);
  if (auto refused = refuse_combination(options, files)) return *std::move(refused);
  if (server.is_unix()) return std::unique_ptr<Credential>();
  auto made = files.certificate.empty()
                  ? of_key(options, handlers)
                  : of_certificate(options, server, std::move(files), handlers);
  if (!made || *made == nullptr) return made;
  base::FileStamps before = (*made)->stamps();
  if (const auto read = (*made)->read(); !read) return read.error();
  (*made)->stamps_ = (*made)->seen_stamps_ = std::move(before);
  if ((*made)->kind_ == Kind::key_file) (*made)->next_look_ = {};  // at once, then in intervals
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
                                                               net::tls::CertificateFiles files,
                                                               const Handlers& handlers) {
  std::string name = server_name_of(options);
  if (name.empty()) name = server.host.empty() ? "localhost" : server.host;
  std::unique_ptr<Credential> made(new Credential(Kind::certificate, std::move(name), handlers));
  made->certificates_ = std::move(files);
  return made;
}

base::FileStamps Credential::stamps() const {
  return base::stamps_of(
      {path_, certificates_.certificate, certificates_.key, certificates_.authorities});
}

Result<void> Credential::read() {
  switch (kind_) {
    case Kind::key_file: {
      const auto file = base::read_secret_file(path_, auth::credentials_bytes_max);
      if (!file) return at("the credential", file.error());
      if (auto read = read_keys(file->text()); !read) return at(path_, read.error());
      break;
    }
    case Kind::key_text:
      if (text_->text().starts_with('/') && text_->text().find(' ') == std::string_view::npos) {
        return at(text_variable, invalid_argument("it takes a line with a key; a path belongs in "
                                                  "MUSTER_CREDENTIAL_FILE"));
      }
      if (auto read = read_keys(text_->text()); !read) return at(text_variable, read.error());
      break;
    case Kind::certificate: {
      auto made = net::tls::TlsContext::client(server_name_, certificates_);
      if (!made) return at("the certificate", made.error());
      context_ = *std::move(made);
    }
  }
  return {};
}

/// The key with which the session stands stays behind those of the file: the server may not know
/// these yet.
Result<void> Credential::read_keys(std::string_view text) {
  const auto credentials = auth::Credentials::read(text);
  if (!credentials) return credentials.error();
  const auto found = keys_of(*credentials);
  if (!found) return found.error();
  std::vector<Key> keys;
  for (const auth::Key* const key : *found) {
    const auto id = net::tls::derive(key->bytes(), auth::info_of_id(server_name_));
    if (!id) return id.error();
    auto secret = net::tls::derive(key->bytes(), auth::info_of_secret(server_name_));
    if (!secret) return secret.error();
    constexpr std::size_t id_bytes = sizeof(auth::KeyId::bytes);
    keys.push_back({{reinterpret_cast<const char*>(id->data()), id_bytes}, *std::move(secret)});
  }
  const auto is_good = [this](const Key& key) { return key.id == good_id_; };
  const auto good = std::find_if(keys_.begin(), keys_.end(), is_good);
  if (good != keys_.end() && std::none_of(keys.begin(), keys.end(), is_good)) {
    keys.push_back({good->id, std::move(good->secret), false});
  }
  keys_ = std::move(keys);
  tried_ = 0;
  is_told_ = false;
  return {};
}

void Credential::refresh() {
  if (kind_ == Kind::key_text) return;
  base::FileStamps now = stamps();
  if (now == stamps_) return;
  stamps_ = std::move(now);
  if (const auto again = read(); !again) {
    handlers_.log(LogLevel::warning,
                  "what was read of a credential before is used on: " + again.error().detail);
  }
}

Credential::Context Credential::next() {
  refresh();
  if (kind_ == Kind::certificate) return context_;
  const Key& key = keys_[tried_];
  if (context_ != nullptr && key.id == shown_id_) return context_;
  auto made = net::tls::TlsContext::client(key.id, key.secret);
  if (!made) return nullptr;
  shown_id_ = key.id;
  context_ = *std::move(made);
  return context_;
}

void Credential::mark_good() {
  good_id_ = shown_id_;
  tried_ = 0;
  std::erase_if(keys_, [this](const Key& key) { return !key.is_of_file && key.id != good_id_; });
}

bool Credential::try_another() {
  if (tried_ + 1 >= keys_.size()) {
    tried_ = 0;
    return false;
  }
  if (tried_ == 0 && !std::exchange(is_told_, true)) {
    const std::string source = kind_ == Kind::key_file ? path_ : text_variable;
    handlers_.log(LogLevel::warning, base::shown_unless_secret(source) +
                                         ": the server does not know its newest key; the one "
                                         "before is used until it does");
  }
  ++tried_;
  return true;
}

bool Credential::has_newer(base::Instant now) {
  if (now < next_look_) return false;
  next_look_ = now + look_interval;
  const base::FileStamps seen = stamps();
  if (seen == std::exchange(seen_stamps_, seen)) refresh();
  if (good_id_.empty() || keys_.front().id == good_id_) return false;
  tried_ = 0;
  return true;
}

}  // namespace muster::client
