#pragma once

#include <cstdint>
#include <memory>

#include "core/host.h"
#include "core/session.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::core {

/// The keys of one namespace and the requests that wait for them.
///
/// A key is absent from its deadline on, whether or not its timer has fired. Entries stand in
/// slots that never move while they live, so that a listing by cursor sees every key that exists
/// throughout exactly once, with bounded work per page.
class Table {
 public:
  explicit Table(Host& host, Quota& quota);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Requests; each is answered through the host, now or (parked) later.
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

  /// The deadline of a get, take or wait has passed: `timed_out`, with the missing keys named.
  void timed_out(Parked& parked);
  /// A timer of kind key has fired: keys go whose time has passed. It is armed again if others
  /// follow. Returns how much was done, about as many removals, at most `work_max`.
  static int fired(Timer& timer, int work_max);
  /// Removes the keys that are bound to the session.
  void session_ended(Session& session);

  void add_counts(Counts& counts) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::core
