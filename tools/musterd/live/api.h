#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/watch.h"
#include "server/http/question.h"
#include "stream.h"

namespace musterd {

/// What is told of a server by HTTP beside its metrics: the page, /api/v1/... and its stream;
/// docs/http.md. Its handlers run on one thread.
class Api {
 public:
  /// What does not change.
  struct Facts {
    std::string version;
    std::string host;
    std::int64_t pid = 0;
    bool asks_for_credentials = false;
  };

  explicit Api(Facts facts) : facts_(std::move(facts)) {}
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Any thread.

  /// From now on there is a server.
  void set(muster::Watch watch);
  void set_draining(bool is_draining);

  /// It outlives them.
  std::vector<muster::server::http::Route> routes();

 private:
  using Answer = muster::server::http::Answer;
  using Question = muster::server::http::Question;
  using Handler = Answer (Api::*)(const muster::Watch& watch, const Question& question);

  Answer answer(Handler handler, const std::vector<std::string_view>& parameters,
                const Question& question);
  Json server_document(const muster::Overview& overview) const;

  Answer server(const muster::Watch& watch, const Question& question);
  Answer namespaces(const muster::Watch& watch, const Question& question);
  Answer sessions(const muster::Watch& watch, const Question& question);
  Answer groups(const muster::Watch& watch, const Question& question);
  Answer group(const muster::Watch& watch, const Question& question);
  Answer why(const muster::Watch& watch, const Question& question);
  Answer waiters(const muster::Watch& watch, const Question& question);
  Answer events(const muster::Watch& watch, const Question& question);
  Answer prefixes(const muster::Watch& watch, const Question& question);
  Answer stream(const muster::Watch& watch, const Question& question);

  const Facts facts_;
  mutable std::mutex mutex_;
  std::optional<muster::Watch> watch_;  ///< nothing: the server has not started yet
  bool is_draining_ = false;
  std::optional<Stream> stream_;  ///< of the thread of the handlers
};

}  // namespace musterd
