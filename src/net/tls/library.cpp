#include "net/tls/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/secret/unshown.h"
#include "net/failure.h"

namespace muster::net::tls {

namespace {

constexpr const char* soname = "libmuster-tls.so.0";
constexpr const char* entry = "muster_tls_table";

using Entry = const Table* (*)();

Error failure(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.operation = "tls";
  error.detail = std::move(detail);
  return error;
}

// What the host has under the same names, such as a TLS library that was linked into it, is not
// meant: OpenSSL itself is asked first. Sanitizers allow no such thing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUSTER_OWN_NAMES_FIRST 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MUSTER_OWN_NAMES_FIRST 0
#endif
#endif
#ifndef MUSTER_OWN_NAMES_FIRST
#define MUSTER_OWN_NAMES_FIRST RTLD_DEEPBIND
#endif

/// Beside this library, else where the system looks. It is never unloaded.
void* load(std::string& why) {
  constexpr int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | MUSTER_OWN_NAMES_FIRST;
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&load), &own) != 0 && own.dli_fname != nullptr) {
    const std::string path = own.dli_fname;
    const auto slash = path.rfind('/');
    if (slash != path.npos)
      if (void* const found = ::dlopen((path.substr(0, slash + 1) + soname).c_str(), mode))
        return found;
  }
  void* const found = ::dlopen(soname, mode);
  if (found == nullptr) why = ::dlerror();
  return found;
}

Result<const Table*> find_table() {
  std::string why;
  Entry found = muster_tls_table;  // of a program that has linked the static form
  if (found == nullptr) {
    void* const library = load(why);
    if (library != nullptr) found = reinterpret_cast<Entry>(::dlsym(library, entry));
  }
  if (found == nullptr) {
    return failure(ErrorCode::unsupported, std::string("a credential needs ") + soname +
                                               ", which cannot be loaded: " + why +
                                               "; install it beside libmuster, with OpenSSL 3");
  }
  const Table* const table = found();
  if (table == nullptr)
    return failure(ErrorCode::unsupported, "OpenSSL in libmuster-tls cannot be set up");
  if (table->version != table_version)
    return failure(ErrorCode::unsupported, "libmuster-tls is of another version of Muster");
  return table;
}

/// Takes what is for the other side. OpenSSL calls it, so it throws nothing: `keep_promise` does.
class Outgoing {
 public:
  explicit Outgoing(std::string& bytes) : bytes_(bytes) {}

  Sink sink() { return {append, this}; }
  /// throws  std::bad_alloc: something of it is lost
  void keep_promise() const {
    if (is_lost_) throw std::bad_alloc();
  }

 private:
  static void append(void* to, const char* bytes, std::size_t size) noexcept {
    auto& self = *static_cast<Outgoing*>(to);
    try {
      self.bytes_.append(bytes, size);
    } catch (const std::bad_alloc&) {
      self.is_lost_ = true;
    }
  }

  std::string& bytes_;
  bool is_lost_ = false;
};

/// The client's context that was made last. In a forked child the mutex may be held for ever by a
/// thread that is not there, so nobody waits for it.
struct LastContext {
  std::mutex mutex;
  std::weak_ptr<const TlsContext> context;
};

/// Never let go: a store may live on while the process ends.
LastContext& last_context() {
  static LastContext& last = *new LastContext;
  return last;
}

/// Of a context that was not made: a file of it is wrong; where there is none, it is memory.
Error no_context(const CertificateFiles& files, const char* why) {
  const bool has_files =
      !files.certificate.empty() || !files.authorities.empty() || files.trusts_system;
  return failure(has_files ? ErrorCode::invalid_argument : ErrorCode::resource_exhausted,
                 base::shown_unless_secret(why));
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

Certificates certificates_of(const CertificateFiles& files) {
  return {or_null(files.certificate), or_null(files.key.empty() ? files.certificate : files.key),
          or_null(files.authorities), files.trusts_system ? 1 : 0};
}

}  // namespace

Result<const Table*> table() {
  static const auto& found = *new Result<const Table*>(find_table());  // as `last_context`
  return found;
}

Result<Secret> derive(std::string_view key, std::string_view info) {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  Secret secret;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(key.data());
  if ((*loaded)->derive(bytes, key.size(), info.data(), info.size(), secret.data()) == 0)
    return failure(ErrorCode::unsupported, "OpenSSL derives no secret");
  return secret;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::server(FindSecret find_secret,
                                                             const CertificateFiles& files) {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  const std::shared_ptr<TlsContext> made(new TlsContext(**loaded));
  made->find_secret_ = std::move(find_secret);
  ServerContext options{};
  if (made->find_secret_) {
    options.find_secret = [](void* user, const unsigned char* id, std::size_t id_size,
                             unsigned char* secret) {
      const std::string_view text(reinterpret_cast<const char*>(id), id_size);
      return (*static_cast<const FindSecret*>(user))(text, secret) ? 1 : 0;
    };
    options.user = &made->find_secret_;
  }
  options.certificates = certificates_of(files);
  char why[256] = "";
  made->context_ = made->table_.make_server(&options, why, sizeof why);
  if (made->context_ == nullptr) return no_context(files, why);
  return std::shared_ptr<const TlsContext>(made);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(std::string_view id,
                                                             const Secret& secret) {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  const std::unique_lock lock(last_context().mutex, std::try_to_lock);
  if (lock) {
    const auto last = last_context().context.lock();
    if (last != nullptr && last->is_for(id, secret)) return last;
  }
  const std::shared_ptr<TlsContext> made(new TlsContext(**loaded));
  made->is_client_ = true;
  made->id_ = id;
  std::copy_n(secret.data(), secret_bytes, made->secret_.data());
  ClientContext options{};
  options.id = reinterpret_cast<const unsigned char*>(id.data());
  options.id_size = id.size();
  options.secret = made->secret_.data();
  char why[256] = "";
  made->context_ = made->table_.make_client(&options, why, sizeof why);
  if (made->context_ == nullptr) return no_context({}, why);
  if (lock) last_context().context = made;
  return std::shared_ptr<const TlsContext>(made);
}

bool TlsContext::is_for(std::string_view id, const Secret& secret) const {
  return id_ == id && std::equal(secret.data(), secret.data() + secret_bytes, secret_.data());
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(const std::string& server_name,
                                                             const CertificateFiles& files) {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  const std::shared_ptr<TlsContext> made(new TlsContext(**loaded));
  made->is_client_ = true;
  ClientContext options{};
  options.server_name = server_name.c_str();
  options.certificates = certificates_of(files);
  char why[256] = "";
  made->context_ = made->table_.make_client(&options, why, sizeof why);
  if (made->context_ == nullptr) return no_context(files, why);
  return std::shared_ptr<const TlsContext>(made);
}

std::vector<CertificateValidity> TlsContext::certificates() const {
  struct Taken {
    std::vector<CertificateValidity> all;
    bool is_lost = false;
  } taken;
  const auto take = [](void* to, const CertificateDates* dates) noexcept {
    auto& into = *static_cast<Taken*>(to);
    try {
      into.all.push_back({dates->of, dates->name, dates->not_before_s, dates->not_after_s});
    } catch (const std::bad_alloc&) {
      into.is_lost = true;
    }
  };
  table_.certificates(context_, take, &taken);
  if (taken.is_lost) throw std::bad_alloc();
  return std::move(taken.all);
}

TlsContext::~TlsContext() { table_.free_context(context_); }

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, Session* session)
    : context_(std::move(context)), session_(session) {}

TlsSession::~TlsSession() { context_->table_.free_session(session_); }

std::unique_ptr<TlsSession> TlsSession::create(std::shared_ptr<const TlsContext> context) {
  Session* const session = context->table_.make_session(context->context_);
  if (session == nullptr) return nullptr;
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(context), session));
}

Read TlsSession::read(std::string_view came, char* plain, std::size_t plain_size,
                      std::string& out) {
  Outgoing outgoing(out);
  const Read done =
      context_->table_.read(session_, came.data(), came.size(), plain, plain_size, outgoing.sink());
  outgoing.keep_promise();
  return done;
}

bool TlsSession::write(std::string_view plain, std::string& out) {
  Outgoing outgoing(out);
  const int done = context_->table_.write(session_, plain.data(), plain.size(), outgoing.sink());
  outgoing.keep_promise();
  return done != 0;
}

void TlsSession::end(std::string& out) {
  Outgoing outgoing(out);
  context_->table_.end(session_, outgoing.sink());
  outgoing.keep_promise();
}

std::string TlsSession::peer_id() const {
  unsigned char id[id_bytes_max];
  const std::size_t size = context_->table_.peer_id(session_, id, sizeof id);
  return std::string(reinterpret_cast<const char*>(id), std::min(size, sizeof id));
}

std::vector<std::string> TlsSession::peer_names() const {
  std::string all(context_->table_.peer_names(session_, nullptr, 0), '\0');
  context_->table_.peer_names(session_, all.data(), all.size());
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    names.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string TlsSession::failure() const { return context_->table_.failure(session_); }

}  // namespace muster::net::tls
