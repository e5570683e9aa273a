#include "server/http/front.h"

#include <string.h>
#include <unistd.h>

#include <array>
#include <new>

#include "base/failure.h"
#include "server/http/library.h"

namespace muster::server::http {
namespace {

constexpr std::size_t lines_max = 256;

PlainText plain(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(PlainText text) { return {text.bytes, text.size}; }

PlainCertificates plain(const Certificates& certificates) {
  return {plain(certificates.certificate), plain(certificates.key),
          plain(certificates.authorities)};
}

std::vector<PlainToken> plain(const std::vector<TokenHolder>& tokens) {
  std::vector<PlainToken> all;
  for (const TokenHolder& token : tokens)
    all.push_back({plain(token.name), static_cast<int>(token.right), token.digest.data()});
  return all;
}

void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

/// Whether "HOST:PORT" means all addresses of the machine.
bool is_everywhere(std::string_view address) {
  return address.starts_with("0.0.0.0:") || address.starts_with("[::]:") ||
         address.starts_with(":");
}

/// "NAME", "NAME:PORT" or "[ADDRESS]:PORT" -> as it stands in a URL before the port.
std::string_view without_port(std::string_view name) {
  const std::size_t end = name.starts_with('[') ? name.find(']') : name.find(':');
  return name.substr(0, end == name.npos ? end : name.starts_with('[') ? end + 1 : end);
}

/// As the machine calls itself; empty: it does not.
std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

std::string name_of(CertificatePart part, const Certificates& certificates) {
  switch (part) {
    case CertificatePart::certificate: return certificates.certificate_name;
    case CertificatePart::key: return certificates.key_name;
    case CertificatePart::authorities: return certificates.authorities_name;
    case CertificatePart::none: break;
  }
  return {};
}

Error error_of(const PlainFailure& failure, const Certificates& certificates) {
  const auto part = static_cast<CertificatePart>(failure.part);
  const std::string name = name_of(part, certificates);
  return base::failure(static_cast<ErrorCode>(failure.code),
                       (name.empty() ? name : name + ": ") + failure.why);
}

}  // namespace

Result<std::unique_ptr<Front>> Front::start(FrontOptions options) {
  std::unique_ptr<Front> front(new Front(std::move(options)));
  Result<void> begun = front->begin();
  if (!begun) return std::move(begun).error();
  return front;
}

Result<void> Front::begin() {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  table_ = *loaded;
  PlainOptions plain_options{};
  plain_options.address = plain(options_.address);
  // That it is known by to those who have named it so, or who see its machine's name.
  options_.names.push_back(is_everywhere(options_.address) ? own_host_name() : options_.address);
  std::vector<PlainText> names;
  for (const std::string& name : options_.names) names.push_back(plain(name));
  plain_options.names = names.data();
  plain_options.names_count = names.size();
  plain_options.allows_unauthenticated = options_.allows_unauthenticated ? 1 : 0;
  plain_options.certificates = plain(options_.certificates);
  plain_options.asks_for_token = options_.asks_for_token ? 1 : 0;
  const std::vector<PlainToken> tokens = plain(options_.tokens);
  plain_options.tokens = tokens.data();
  plain_options.tokens_count = tokens.size();
  std::vector<PlainRoute> routes;
  for (Route& route : options_.routes)
    routes.push_back({plain(route.prefix), static_cast<int>(route.needs), route.goes_on ? 1 : 0,
                      answer, &route});
  plain_options.routes = routes.data();
  plain_options.routes_count = routes.size();
  plain_options.limits = options_.limits;
  plain_options.user = this;
  plain_options.turns = [](void* self) { return static_cast<Front*>(self)->turns_.load(relaxed); };
  plain_options.log = [](void* self, int level, PlainText line) {
    static_cast<Front*>(self)->add_line(static_cast<LogLevel>(level), view(line));
  };
  PlainFailure failure{};
  front_ = table_->start(&plain_options, &failure);
  wipe(options_.certificates.key);
  if (front_ == nullptr) return error_of(failure, options_.certificates);
  return {};
}

Front::~Front() {
  if (front_ != nullptr) table_->stop(front_);
}

std::string Front::url() const {
  const bool has_tls = !options_.certificates.certificate.empty();
  std::string address = table_->address(front_);
  // By that of all addresses nobody connects.
  const std::string name(without_port(options_.names.front()));
  if (is_everywhere(address) && !name.empty()) address = name + ":" + std::to_string(port());
  return (has_tls ? "https://" : "http://") + address + "/";
}

std::uint16_t Front::port() const { return table_->port(front_); }

std::string Front::exposure() const {
  std::string who = options_.asks_for_token ? "whoever has a token" : "whoever reaches it";
  if (!options_.certificates.authorities.empty())
    who += options_.asks_for_token ? " and a certificate" : " with a certificate";
  const char* const where = is_everywhere(table_->address(front_)) ? " (all addresses)" : "";
  return "http at " + url() + where + ": " + who +
         (options_.asks_for_token ? " may ask what its right allows" : " may read what it shows");
}

Front::Lines Front::take_lines() {
  const std::lock_guard lock(mutex_);
  has_lines_.store(false, relaxed);
  return {std::exchange(lines_, {}), std::exchange(dropped_count_, 0)};
}

void Front::add_line(LogLevel level, std::string_view line) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (lines_.size() < lines_max) {
      lines_.push_back({level, std::string(line)});
    } else {
      ++dropped_count_;
    }
  } catch (const std::bad_alloc&) {
    ++dropped_count_;
  }
  has_lines_.store(true, relaxed);
}

int Front::answer(void* route, const PlainQuestion* question, AnswerSink sink) noexcept {
  try {
    const Answer answer = static_cast<const Route*>(route)->handler(
        {view(question->path), view(question->query), view(question->accept),
         static_cast<Right>(question->right), question->position});
    const PlainAnswer told{answer.status, plain(answer.type), plain(answer.body),
                           plain(answer.content_policy), answer.goes_on_at};
    sink.take(sink.to, &told);
    return 1;
  } catch (...) {  // whatever it is, it concerns this answer alone
    return 0;
  }
}

void Front::set_phase(Phase phase, std::string_view reason) {
  table_->set_phase(front_, static_cast<int>(phase), plain(reason));
}

void Front::set_tokens(const std::vector<TokenHolder>& tokens) {
  const std::vector<PlainToken> all = plain(tokens);
  table_->set_tokens(front_, all.data(), all.size());
}

Result<void> Front::set_certificates(const Certificates& certificates) {
  const PlainCertificates all = plain(certificates);
  PlainFailure failure{};
  if (table_->set_certificates(front_, &all, &failure) == 0) return error_of(failure, certificates);
  return {};
}

}  // namespace muster::server::http
