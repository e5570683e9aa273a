#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spare_nodes.h"
#include "base/time.h"
#include "client/protocol/fate.h"
#include "wire/operation.h"

namespace muster::client::protocol {

using base::Instant;

/// A call that is not over.
struct Call {
  std::uint64_t id = 0;
  std::uint64_t user_data = 0;  ///< of who submitted it
  wire::Operation operation{};
  std::string_view name;  ///< for errors
  std::string fields;     ///< of the operation, encoded once
  bool is_barrier = false;
  Receipt receipt = Receipt::at_once;
  Instant submitted{};
  Duration timeout{0};
  Instant deadline{};
  std::uint64_t serial = 0;   ///< of the frame that carried it last; 0: never sent
  bool is_repeated = false;   ///< it was sent on an earlier connection, too
  bool is_in_flight = false;  ///< it counts against the limit
  bool is_lasting = false;    ///< it ends with its answer or the session, and nothing else

  bool is_sent() const { return serial != 0; }
};

/// The calls by id, by when they have to be looked at, and in the order in which they are sent:
/// that of their ids, so that what was sent is always a prefix and the rest is the queue.
///
/// Cost: O(log n) per operation for n calls, and no memory in steady state; nothing walks over
/// them but a resend and the end of all of them.
class Calls {
 public:
  /// A call with this id and nothing else, to look at only when `wake_at` has said when. It stays
  /// where it is until it is removed.
  Call& add(std::uint64_t id);
  /// Null when there is none.
  Call* find(std::uint64_t id);
  const Call* find(std::uint64_t id) const;
  void remove(const Call& call);
  /// In the order of their ids.
  std::vector<Call> remove_all();

  std::size_t count() const { return by_id_.size(); }

  /// Null when nothing is queued.
  Call* first_unsent();
  void mark_sent(Call& call, std::uint64_t serial);
  std::vector<std::uint64_t> sent_ids() const;
  /// Those that do not last.
  std::vector<std::uint64_t> passing_ids() const;

  /// A call to look at; null when none is due.
  Call* due(Instant now);
  void wake_at(const Call& call, Instant wake);
  Instant next_wake() const;

 private:
  struct Entry {
    Call call;
    Instant wake = base::far_future;
  };
  using ById = std::map<std::uint64_t, Entry>;
  using ByWake = std::set<std::pair<Instant, std::uint64_t>>;

  void forget_wake(const Entry& entry);

  ById by_id_;
  ByWake by_wake_;  ///< but for those that are never to be looked at
  std::uint64_t last_sent_ = 0;
  base::SpareNodes<ById> spare_entries_;
  base::SpareNodes<ByWake> spare_wakes_;
};

}  // namespace muster::client::protocol
