#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "core/reply_heads.h"
#include "core/table.h"
#include "core/table_state.h"

namespace muster::core {

/// What a write does to the time its key has left and to the session it goes with.
struct Terms {
  enum class Binding { keep, clear, caller };

  std::optional<Instant> deadline;  ///< far_future: none; no value: as it was
  Binding binding = Binding::keep;
};

/// The requests; table.cpp has those on one key, table_multi.cpp those on several.
class Table::Impl {
 public:
  Impl(Host& host, Quota& quota)
      : host_(host), options_(host.options()), quota_(quota), state_(host, quota) {}

  void set(const RequestContext& context, const wire::Set& request);
  void get(const RequestContext& context, std::string_view key);
  void take(const RequestContext& context, std::string_view key);
  void add(const RequestContext& context, const wire::Add& request);
  void compare_set(const RequestContext& context, const wire::CompareSet& request);
  void append(const RequestContext& context, const wire::Append& request);
  void touch(const RequestContext& context, const wire::Touch& request);

  void remove(const RequestContext& context, const wire::Remove& request);
  void exists(const RequestContext& context, const wire::Exists& request);
  void wait(const RequestContext& context, const wire::Wait& request);
  void multi_get(const RequestContext& context, const wire::MultiGet& request);
  void multi_set(const RequestContext& context, const wire::MultiSet& request);
  void list_keys(const RequestContext& context, const wire::List& request);

  void timed_out(Parked& parked);
  void session_ended(Session& session);
  void add_counts(Counts& counts) const;

 private:
  using Keys = std::vector<std::string_view>;
  using Values = std::vector<std::optional<std::string_view>>;

  // Each returns what is wrong with its argument.
  std::optional<Error> check_key(std::string_view key) const;
  std::optional<Error> check_key_count(std::size_t count) const;
  std::optional<Error> check_keys(const Keys& keys) const;
  std::optional<Error> check_value(std::string_view key, std::uint64_t value_bytes) const;
  std::optional<Error> check_ttl(const wire::Ttl& ttl) const;

  Instant deadline_of(const wire::Ttl& ttl) const;
  Error memory_refused(std::uint64_t bytes) { return memory_exhausted(host_, quota_, bytes); }

  /// Stores the value, in two pieces, and answers with `answer`, or fails without a trace.
  void write(const RequestContext& context, const Spot& spot, std::string_view first,
             std::string_view second, const Terms& terms, Answer&& answer);
  void apply_terms(Entry& entry, const Terms& terms, Session& session);

  /// Appends the value of each; none: it is absent.
  void look_for(std::span<const std::string_view> keys, Values& values);

  /// Lets the request wait until all keys are there; it fails at once if it does not want to.
  void park(const RequestContext& context, const Keys& keys);
  Error absent(ErrorCode code, const Keys& missing, Duration timeout) const;

  Host& host_;
  const Options& options_;
  Quota& quota_;
  TableState state_;
};

}  // namespace muster::core
