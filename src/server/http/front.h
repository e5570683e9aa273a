#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/log.h"
#include "muster/result.h"
#include "server/http/question.h"
#include "server/http/table.h"
#include "server/http/tokens.h"

namespace muster::server::http {

/// In the form PEM; no certificate: there is no TLS.
struct Certificates {
  std::string certificate;
  std::string key;
  std::string authorities;  ///< who signs the certificates of clients; empty: none is asked for
  // Where each comes from, for messages; empty: it is not told.
  std::string certificate_name{};
  std::string key_name{};
  std::string authorities_name{};
};

struct FrontOptions {
  std::string address;             ///< HOST:PORT; port 0: any free one
  std::vector<std::string> names;  ///< as which it is asked for, beside loopback's and its address
  bool allows_unauthenticated = false;
  Certificates certificates;
  bool asks_for_token = false;
  std::vector<TokenHolder> tokens;
  std::vector<Route> routes;
  Limits limits;
};

/// Answers browsers and monitoring by HTTP, on a thread of its own with descriptors of its own, so
/// that nothing which comes there costs the server anything but memory, of which it takes a bounded
/// amount. It knows of the server what the server publishes.
class Front {
 public:
  /// Loads libmuster-http, and returns when it listens.
  ///
  /// errors  unsupported (there is no such library), address_in_use, permission_denied (other
  ///         machines could reach it, and nobody would be asked who he is), invalid_argument (of a
  ///         certificate, a key or authorities `detail` begins with the name), unavailable (any
  ///         other failure of the system)
  static Result<std::unique_ptr<Front>> start(FrontOptions options);
  /// Closes its connections.
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  std::string url() const;
  std::uint16_t port() const;
  /// What whoever reaches it can do, for the log.
  std::string exposure() const;

  // The thread that serves, at each of its turns.

  void turned() noexcept { turns_.store(turns_.load(relaxed) + 1, relaxed); }
  /// The front has no descriptor to log to: whoever has started it asks for its lines.
  bool has_lines() const noexcept { return has_lines_.load(relaxed); }
  struct Line {
    LogLevel level;
    std::string text;
  };
  struct Lines {
    std::vector<Line> lines;
    std::uint64_t dropped_count;  ///< since the last call
  };
  Lines take_lines();

  // The thread that has started it.

  void set_phase(Phase phase, std::string_view reason);
  void set_tokens(const std::vector<TokenHolder>& tokens);
  Result<void> set_certificates(const Certificates& certificates);

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  explicit Front(FrontOptions options) : options_(std::move(options)) {}
  Result<void> begin();
  void add_line(LogLevel level, std::string_view line) noexcept;
  static int answer(void* route, const PlainQuestion* question, AnswerSink sink) noexcept;

  FrontOptions options_;
  const Table* table_ = nullptr;
  FrontHandle* front_ = nullptr;
  std::atomic<std::uint64_t> turns_{0};
  std::atomic<bool> has_lines_{false};
  std::mutex mutex_;
  std::vector<Line> lines_;
  std::uint64_t dropped_count_ = 0;
};

}  // namespace muster::server::http
