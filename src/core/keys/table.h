#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/keys/prefix_counts.h"
#include "core/keys/table_state.h"
#include "core/session/engine_services.h"
#include "core/session/session.h"
#include "wire/request.h"

namespace muster::core {

/// The keys of one namespace and the requests that wait for them.
///
/// A key is absent from its deadline on, whether or not its timer has fired. Entries stand in
/// slots that never move while they live, so that a listing by cursor sees every key that exists
/// throughout exactly once, with bounded work per page.
class Table {
 public:
  Table(EngineServices& services, Accounts& accounts)
      : services_(services), options_(services.options()), state_(services, accounts) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Requests; each is answered through the host, now or (parked) later. table.cpp has those on one
  // key, table_multi.cpp those on several, table_queues.cpp those on queues, and GuestCalls those
  // that only guests ask.
  void set(const RequestContext& context, const wire::Set& request);
  void get(const RequestContext& context, const wire::Get& request);
  void take(const RequestContext& context, const wire::Take& request);
  void add(const RequestContext& context, const wire::Add& request);
  void compare_set(const RequestContext& context, const wire::CompareSet& request);
  void append(const RequestContext& context, const wire::Append& request);
  void remove(const RequestContext& context, const wire::Remove& request);
  void exists(const RequestContext& context, const wire::Exists& request);
  void wait(const RequestContext& context, const wire::Wait& request);
  void multi_get(const RequestContext& context, const wire::MultiGet& request);
  void multi_set(const RequestContext& context, const wire::MultiSet& request);
  void list_keys(const RequestContext& context, const wire::List& request);
  void touch(const RequestContext& context, const wire::Touch& request);
  void queue_push(const RequestContext& context, const wire::QueuePush& request);
  void queue_pop(const RequestContext& context, const wire::QueuePop& request);
  void queue_length(const RequestContext& context, const wire::QueueLength& request);

  /// Counts the keys in so many slots from `slot` on.
  ///
  /// returns  the slot behind them; 0: there is none
  std::uint32_t count_prefixes(std::uint32_t slot, std::uint32_t slots_max, PrefixCounts& counts);

  /// What a reply with the values of these keys would take.
  std::uint64_t bytes_of(const std::vector<std::string_view>& keys) const;

  /// A timer of kind key has fired: keys go whose time has passed. It is armed again if others
  /// follow. Returns how much was done, about as many removals, at most `work_max`.
  static int fired(Timer& timer, int work_max);
  /// The item that is kept for a guest, if any, is for others now.
  void end_offer(Session& guest);
  /// The keys that are bound to the session are absent from now on.
  void session_ended(Session& session);

  /// From now on it has no keys; nobody waits here. `remove_dropped` removes them.
  void drop() { state_.key_count.drop(); }
  /// Returns how many it has removed, less than `count_max` when none is left.
  int remove_dropped(int count_max);

  std::uint64_t key_count() const { return state_.key_count.value(); }
  bool is_empty() const { return key_count() == 0 && state_.queues.count() == 0; }

 private:
  friend class GuestCalls;

  /// What a write does to the time its key has left and to the session it goes with.
  struct Terms {
    enum class Binding { keep, clear, caller };

    std::optional<Instant> deadline;  ///< far_future: none; no value: as it was
    Binding binding = Binding::keep;
  };

  using Keys = std::vector<std::string_view>;
  using Values = std::vector<std::optional<std::string_view>>;

  // Each returns what is wrong with its argument.
  std::optional<Error> check_key(std::string_view key) const;
  std::optional<Error> check_key_count(std::size_t count, std::uint32_t limit) const;
  std::optional<Error> check_keys(const Keys& keys) const;
  std::optional<Error> check_places(const Session& session, std::size_t count) const;
  std::optional<Error> check_value(std::string_view key, std::uint64_t value_bytes) const;
  std::optional<Error> check_ttl(const wire::Ttl& ttl) const;

  Instant deadline_of(const wire::Ttl& ttl) const;

  /// Stores the value, in two pieces, and answers with `answer`, or fails without a trace.
  void write(const RequestContext& context, const Spot& spot, std::string_view first,
             std::string_view second, const Terms& terms, Answer&& answer);
  void apply_terms(Entry& entry, const Terms& terms, Session& session);

  /// Appends the value of each; none: it is absent.
  void look_for(std::span<const std::string_view> keys, Values& values);
  /// A wire::ValuesReply that is put together later; without a tail when the quota refuses.
  Answer values_answer_later(Quota& quota, const Keys& keys);

  /// Lets the request wait until all keys are there; it fails at once if it does not want to.
  void park(const RequestContext& context, const Keys& keys);

  EngineServices& services_;
  const Options& options_;
  TableState state_;
};

}  // namespace muster::core
