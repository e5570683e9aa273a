#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "core/keys/key_wait.h"
#include "core/session/backlog.h"
#include "core/session/engine_services.h"

namespace muster::core {

/// Those who waited for keys that came in one event, to be told in the order in which they came.
/// They may leave meanwhile.
class Decision {
 public:
  /// The queue has left its key. `source`: where its value is as long as the event lasts.
  void add(std::unique_ptr<Readers> readers, Entry* source);
  bool empty() const { return queues_.empty(); }
  std::size_t count() const;
  /// From now on the values are those that the keys have now.
  void keep_values(TableState& table);

  /// Whose turn it is; null: all have been told, or have left.
  KeyWait* next();
  /// What `wait` gets, whose turn it is.
  Answer answer(const KeyWait& wait) const;

 private:
  struct Queue {
    std::unique_ptr<Readers> readers;
    Entry* source;  ///< null: the readers have the value
  };
  using Turn = std::pair<std::uint64_t, std::size_t>;  ///< the number of a wait, and its queue
  using Turns = std::priority_queue<Turn, std::vector<Turn>, std::greater<>>;

  std::vector<Queue> queues_;
  Turns turns_;           ///< one for each queue that is not empty, if there are several
  std::size_t turn_ = 0;  ///< the queue whose turn it is
};

/// Tells those whom their own event could not tell any more.
class LateAnswers final : public Backlog::Job {
 public:
  explicit LateAnswers(EngineServices& services) : services_(services) {}

  bool empty() const { return decisions_.empty(); }
  void add(Decision decision);
  int work(int work_max) override;

 private:
  EngineServices& services_;
  std::deque<Decision> decisions_;
};

}  // namespace muster::core
