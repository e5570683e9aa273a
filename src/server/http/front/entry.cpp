#include <openssl/crypto.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/failure.h"
#include "server/http/front/front_thread.h"
#include "server/http/table.h"

// The table: plain types to the outside, and no exception.

namespace muster::server::http {

/// What the other side has in hand.
struct FrontHandle {
  std::unique_ptr<FrontThread> thread;
};

namespace {

std::string owned(PlainText text) { return {text.bytes, text.size}; }
PlainText lent(std::string_view text) { return {text.data(), text.size()}; }

std::vector<TokenHolder> owned(const PlainToken* tokens, std::size_t count) {
  std::vector<TokenHolder> holders;
  for (const PlainToken* token = tokens; token != tokens + count; ++token) {
    TokenHolder holder{owned(token->name), static_cast<Right>(token->right), {}};
    std::copy_n(token->digest, digest_bytes, holder.digest.begin());
    holders.push_back(std::move(holder));
  }
  return holders;
}

/// A handler that asks the other side.
Handler handler_of(const PlainRoute& route) {
  return [route](const Question& question) {
    const PlainQuestion asked{lent(question.path), lent(question.query), lent(question.accept),
                              static_cast<int>(question.right), question.position};
    Answer answer;
    const AnswerSink sink{[](void* to, const PlainAnswer* told) {
                            auto& taken = *static_cast<Answer*>(to);
                            taken = {told->status, owned(told->type), owned(told->body),
                                     owned(told->content_policy), told->goes_on_at};
                          },
                          &answer};
    if (route.answer(route.user, &asked, sink) == 0)
      answer = {500, "text/plain; charset=utf-8",
                "The answer could not be made: memory may be short.\n"};
    return answer;
  };
}

void fail(PlainFailure* failure, const Error& error) {
  failure->code = static_cast<int>(error.code);
  std::snprintf(failure->why, sizeof failure->why, "%s", error.detail.c_str());
}

/// returns  null: `failure` says why
std::shared_ptr<TlsContext> tls_of(const PlainCertificates& certificates, PlainFailure* failure) {
  TlsRefusal refusal;
  Certificates files{owned(certificates.certificate), owned(certificates.key),
                     owned(certificates.authorities)};
  auto made = make_tls_context(files, refusal);
  OPENSSL_cleanse(files.key.data(), files.key.size());
  if (made == nullptr) {
    fail(failure, base::failure(ErrorCode::invalid_argument, refusal.why));
    failure->part = static_cast<int>(refusal.part);
  }
  return made;
}

ThreadOptions owned(const PlainOptions& options) {
  ThreadOptions made;
  made.address = owned(options.address);
  for (std::size_t at = 0; at < options.names_count; ++at)
    made.names.push_back(owned(options.names[at]));
  made.allows_unauthenticated = options.allows_unauthenticated != 0;
  made.asks_for_token = options.asks_for_token != 0;
  made.tokens = owned(options.tokens, options.tokens_count);
  for (std::size_t at = 0; at < options.routes_count; ++at) {
    const PlainRoute& route = options.routes[at];
    made.routes.push_back({owned(route.prefix), static_cast<Right>(route.needs), handler_of(route),
                           route.goes_on != 0});
  }
  made.limits = options.limits;
  made.turns = [turns = options.turns, user = options.user] { return turns(user); };
  made.log = [log = options.log, user = options.user](LogLevel level, std::string_view line) {
    log(user, static_cast<int>(level), lent(line));
  };
  made.asks_for_certificate = options.certificates.authorities.size != 0;
  return made;
}

/// Nothing is thrown at the other side.
template <class Work>
auto guarded(PlainFailure* failure, const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    fail(failure, base::failure(ErrorCode::unavailable, thrown.what()));
    return {};
  }
}

FrontHandle* start(const PlainOptions* options, PlainFailure* failure) {
  return guarded(failure, [&]() -> FrontHandle* {
    auto read = owned(*options);
    if (options->certificates.certificate.size != 0) {
      read.tls = tls_of(options->certificates, failure);
      if (read.tls == nullptr) return nullptr;
    }
    auto started = FrontThread::start(std::move(read));
    if (started) return new FrontHandle{std::move(*started)};
    fail(failure, started.error());
    return nullptr;
  });
}

void stop(FrontHandle* front) { delete front; }

const char* address(const FrontHandle* front) { return front->thread->address().c_str(); }

std::uint16_t port(const FrontHandle* front) { return front->thread->port(); }

void set_phase(FrontHandle* front, int phase, PlainText reason) {
  PlainFailure ignored{};
  guarded(&ignored, [&] {
    front->thread->order([phase, text = owned(reason)](Site& site) {
      site.set_phase(static_cast<Phase>(phase), text);
    });
    return 1;
  });
}

void set_tokens(FrontHandle* front, const PlainToken* tokens, std::size_t count) {
  PlainFailure ignored{};
  guarded(&ignored, [&] {
    front->thread->order(
        [holders = owned(tokens, count)](Site& site) { site.set_tokens(holders); });
    return 1;
  });
}

int set_certificates(FrontHandle* front, const PlainCertificates* certificates,
                     PlainFailure* failure) {
  return guarded(failure, [&] {
    auto tls = tls_of(*certificates, failure);
    if (tls == nullptr) return 0;
    front->thread->set_tls(std::move(tls));
    return 1;
  });
}

int digest(PlainText bytes, unsigned char* digest) {
  return make_digest({bytes.bytes, bytes.size}, digest) ? 1 : 0;
}

constexpr Table front_table = {table_version,    start, stop, address, port, set_phase, set_tokens,
                               set_certificates, digest};

}  // namespace
}  // namespace muster::server::http

extern "C" __attribute__((visibility("default"))) const muster::server::http::Table*
muster_http_table() {
  return muster::server::http::set_up_openssl() ? &muster::server::http::front_table : nullptr;
}
