#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/inline_function.h"
#include "base/time.h"
#include "client/link/cancel_requests.h"
#include "client/protocol/session.h"
#include "muster/result.h"

namespace muster::client {

using base::Instant;

/// Who waits for a session to stand, each until its own deadline. Under the link's lock.
class Establishments {
 public:
  using Done = base::InlineFunction<void(Result<void>&& result), 16>;

  struct Waiting {
    std::uint64_t number = 0;  ///< a serial of `CancelRequests`
    Instant deadline{};
    Instant begun{};
    bool is_cancelled = false;
    Done done;
  };

  bool empty() const { return waiting_.empty(); }
  /// Takes it, unless it throws std::bad_alloc.
  void add(Waiting&& waiting);
  std::optional<Waiting> take_back(std::uint64_t number);
  std::vector<Waiting> take_all() { return std::exchange(waiting_, {}); }

  /// One more attempt to connect has begun.
  void count_attempt() { ++attempt_count_; }

  void cancel(std::uint64_t number);
  /// All that are meant.
  void cancel(const CancelRequests& requests);

  /// Those that wait no longer, with their results.
  ///
  /// awaited  what the last attempt waits for, if it has not ended; or empty
  std::vector<std::pair<Waiting, Result<void>>> take_settled(const protocol::Session& session,
                                                             bool is_established, Instant now,
                                                             const std::string& awaited);
  Instant next_deadline() const;

 private:
  std::optional<Result<void>> outcome_of(const Waiting& waiting, const protocol::Session& session,
                                         Instant now, const std::string& awaited) const;
  Error not_established(const Waiting& waiting, const protocol::Session& session, Instant now,
                        const std::string& awaited) const;

  std::vector<Waiting> waiting_;
  std::uint64_t attempt_count_ = 0;  ///< to connect, since the first of them came
};

}  // namespace muster::client
