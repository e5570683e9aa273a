#pragma once

#include <cstdint>
#include <optional>

#include "base/spare_nodes.h"
#include "core/session/answers.h"

namespace muster::core {

struct Session;

/// The answers of all sessions that are not acknowledged yet: charged to the session's namespace
/// and counted against the session's limits.
class AnswerCache {
 public:
  /// `count` is kept right.
  explicit AnswerCache(std::uint64_t& count) : count_(count) {}

  const Answer& keep(Session& session, std::uint64_t request_id, Answer&& answer);
  /// returns  what acknowledging the answer sets free; nothing: there is no such answer
  std::optional<OnAcknowledged> forget(Session& session, std::uint64_t request_id);
  void forget_all(Session& session);
  /// What the answer says that was taken is there again, and the answer is forgotten. False: there
  /// is no such answer, or it cannot be given back.
  bool give_back(Session& session, std::uint64_t request_id);

 private:
  void drop(Session& session, Answers::node_type kept);

  std::uint64_t& count_;
  base::SpareNodes<Answers> spare_;
};

}  // namespace muster::core
