#include "http_front.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/secret/secret_file.h"
#include "base/secret/unshown.h"
#include "given.h"

namespace musterd {
namespace {

using muster::Error;
using muster::LogLevel;
using muster::Result;
using muster::base::shown_unless_secret;
namespace http = muster::server::http;

constexpr std::size_t pem_bytes_max = 1U << 20;

/// The flag, the variable or the line that has named it.
std::string where_given(const Configuration& configuration, const std::string& name) {
  const auto given = configuration.given.find(name);
  return given == configuration.given.end() ? "--" + name : given->second;
}

Error at(const Configuration& configuration, const std::string& name, Error error) {
  error.detail = where_given(configuration, name) + ": " + error.detail;
  return error;
}

Result<std::string> read_file(const Configuration& configuration, const std::string& name,
                              const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad())
    return at(configuration, name,
              muster::base::failure(muster::ErrorCode::unavailable,
                                    shown_unless_secret(path) + ": cannot be read"));
  if (text.empty())
    return at(configuration, name,
              muster::base::failure(muster::ErrorCode::invalid_argument,
                                    shown_unless_secret(path) + ": it is empty"));
  return text;
}

Result<http::Certificates> read_certificates(const Configuration& configuration) {
  const HttpConfiguration& wanted = configuration.http;
  http::Certificates certificates;
  if (wanted.certificate_file.empty()) return certificates;
  auto certificate = read_file(configuration, "http-cert", wanted.certificate_file);
  if (!certificate) return std::move(certificate).error();
  auto authorities = read_file(configuration, "http-client-ca", wanted.authorities_file);
  if (!authorities) return std::move(authorities).error();
  const bool has_own_file = !wanted.key_file.empty();
  const std::string key_flag = has_own_file ? "http-key" : "http-cert";
  const std::string& key_file = has_own_file ? wanted.key_file : wanted.certificate_file;
  const auto key = muster::base::read_secret_file(key_file, pem_bytes_max);
  if (!key) return at(configuration, key_flag, key.error());
  certificates.certificate = std::move(*certificate);
  certificates.authorities = std::move(*authorities);
  certificates.key = key->text();
  const auto name = [&](const std::string& flag, const std::string& path) {
    return where_given(configuration, flag) + ": " + shown_unless_secret(path);
  };
  certificates.certificate_name = name("http-cert", wanted.certificate_file);
  certificates.key_name = name(key_flag, key_file);
  certificates.authorities_name = name("http-client-ca", wanted.authorities_file);
  return certificates;
}

Result<std::vector<http::TokenHolder>> read_token_file(const Configuration& configuration) {
  const std::string& path = configuration.http.tokens_file;
  if (path.empty()) return std::vector<http::TokenHolder>();
  const auto text = muster::base::read_secret_file(path, http::tokens_file_bytes_max);
  if (!text) return at(configuration, "http-tokens", text.error());
  auto tokens = http::read_tokens(text->text());
  if (!tokens) {
    Error error = std::move(tokens).error();
    error.detail = shown_unless_secret(path) + ": " + error.detail;
    return at(configuration, "http-tokens", std::move(error));
  }
  return tokens;
}

void warn_of_no_token(const muster::Logger& log, const std::string& path) {
  log(LogLevel::warning,
      shown_unless_secret(path) +
          " has no token: nobody may ask at --http; musterctl keygen --http makes one");
}

/// Of the address, unless it names the file that is wrong.
Error at_address(const Configuration& configuration, Error error) {
  for (const char* name : {"http-cert", "http-key", "http-client-ca"}) {
    const bool is_given = configuration.given.contains(name);
    if (is_given && error.detail.starts_with(where_given(configuration, name) + ": ")) return error;
  }
  return at(configuration, "http", std::move(error));
}

constexpr std::string_view openmetrics_type = "application/openmetrics-text";

/// Prometheus asks for OpenMetrics first; a browser does not know it. Who gives it no weight
/// (";q=0") does not want it.
muster::MetricsFormat format_for(std::string_view accept) {
  const std::size_t at = accept.find(openmetrics_type);
  if (at == accept.npos) return muster::MetricsFormat::prometheus;
  const std::string_view wanted = accept.substr(at, accept.find(',', at) - at);
  const std::size_t weight = wanted.find("q=");
  const bool is_unwanted =
      weight != wanted.npos && wanted.substr(weight + 2).find_first_not_of("0. ") == wanted.npos;
  return is_unwanted ? muster::MetricsFormat::prometheus : muster::MetricsFormat::openmetrics;
}

Api::Facts facts_of(const Configuration& configuration) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const bool has_credentials = !configuration.server.credentials_file.empty();
  return {MUSTER_VERSION, host.data(), ::getpid(), has_credentials};
}

}  // namespace

class HttpFront::Shown {
 public:
  void set(muster::Metrics metrics) {
    const std::lock_guard lock(mutex_);
    metrics_ = std::move(metrics);
  }

  /// Waits for nothing, but for the first figures.
  http::Answer metrics(const http::Question& question) {
    std::optional<muster::Metrics> metrics;
    {
      const std::lock_guard lock(mutex_);
      metrics = metrics_;
    }
    const muster::MetricsFormat format = format_for(question.accept);
    std::string text = metrics ? metrics->text(format, first_figures_time) : std::string();
    if (text.empty()) return {503, "text/plain; charset=utf-8", "The server tells no figures.\n"};
    return {200, std::string(content_type_of(format)), std::move(text)};
  }

 private:
  /// The server tells them in its next tick.
  static constexpr auto first_figures_time = std::chrono::milliseconds(700);

  std::mutex mutex_;
  std::optional<muster::Metrics> metrics_;  ///< none: the server has not started yet
};

HttpFront::HttpFront(const Configuration& configuration, const muster::Logger& log,
                     std::shared_ptr<Shown> shown, std::shared_ptr<Api> api)
    : configuration_(configuration), log_(log), shown_(std::move(shown)), api_(std::move(api)) {}

Result<std::unique_ptr<HttpFront>> HttpFront::start(const Configuration& configuration,
                                                    const muster::Logger& log) {
  auto certificates = read_certificates(configuration);
  if (!certificates) return std::move(certificates).error();
  auto tokens = read_token_file(configuration);
  if (!tokens) return std::move(tokens).error();
  const std::string& tokens_file = configuration.http.tokens_file;
  if (tokens->empty() && !tokens_file.empty()) warn_of_no_token(log, tokens_file);
  http::FrontOptions options;
  options.address = configuration.http.address;
  options.names = configuration.http.names;
  options.allows_unauthenticated = configuration.server.allow_unauthenticated;
  options.certificates = std::move(*certificates);
  options.asks_for_token = !tokens_file.empty();
  options.tokens = std::move(*tokens);
  auto shown = std::make_shared<Shown>();
  auto api = std::make_shared<Api>(facts_of(configuration));
  options.routes = api->routes();
  options.routes.push_back({"/metrics", http::Right::read, [shown](const http::Question& question) {
                              return shown->metrics(question);
                            }});
  auto front = http::Front::start(std::move(options));
  if (!front) return at_address(configuration, std::move(front).error());
  std::unique_ptr<HttpFront> made(
      new HttpFront(configuration, log, std::move(shown), std::move(api)));
  made->front_ = std::move(*front);
  log(LogLevel::info, "exposed: " + made->front_->exposure());
  return made;
}

void HttpFront::log_lines() {
  const auto taken = front_->take_lines();
  for (const auto& line : taken.lines) log_(line.level, line.text);
  if (taken.dropped_count == 0) return;
  log_(LogLevel::warning, std::to_string(taken.dropped_count) + " lines of http were dropped");
}

void HttpFront::serves(const muster::Server& server) {
  shown_->set(server.metrics());
  api_->set(server.watch());
  front_->set_phase(http::Phase::serving, {});
}

void HttpFront::drains(std::string_view reason) {
  api_->set_draining(!reason.empty());
  if (reason.empty()) return front_->set_phase(http::Phase::serving, {});
  // Whoever asks may be anybody: what operators say of it is in the log.
  front_->set_phase(http::Phase::ending, "it is being drained");
}

void HttpFront::ends(std::string_view reason) { front_->set_phase(http::Phase::ending, reason); }

bool HttpFront::reload() {
  if (!configuration_.http.tokens_file.empty()) {
    const auto tokens = read_token_file(configuration_);
    if (tokens) {
      front_->set_tokens(*tokens);
      log_(LogLevel::info, "tokens for http were read: " + std::to_string(tokens->size()));
      if (tokens->empty()) warn_of_no_token(log_, configuration_.http.tokens_file);
    } else {
      log_(LogLevel::error, "the tokens for http stay as they were: " + tokens.error().detail);
    }
  }
  if (configuration_.http.certificate_file.empty()) return !configuration_.http.tokens_file.empty();
  const auto certificates = read_certificates(configuration_);
  const auto changed =
      certificates ? front_->set_certificates(*certificates) : Result<void>(certificates.error());
  if (changed) {
    log_(LogLevel::info, "the certificate for http was read");
  } else {
    log_(LogLevel::error, "the certificate for http stays as it was: " + changed.error().detail);
  }
  return true;
}

}  // namespace musterd
