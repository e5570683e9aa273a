#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "core/name_spaces.h"
#include "core/report.h"
#include "core/session/snapshot.h"
#include "core/session/watch/viewer.h"
#include "core/sessions.h"
#include "core/watch/look.h"
#include "wire/operation_table.h"

namespace muster::core {

/// What operators are told of the server, and what is counted for them alone.
class Inspector {
 public:
  Inspector(EngineServices& services, NameSpaces& name_spaces, const Sessions& sessions)
      : services_(services), name_spaces_(name_spaces), sessions_(sessions) {}
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // Requests.
  void tell(const RequestContext& context, const wire::Status& request);  // inspector_status.cpp
  void tell(const RequestContext& context, const wire::WhoAmI& request);
  void tell(const RequestContext& context, const wire::Sessions& request);
  void tell(const RequestContext& context, const wire::Waiters& request);
  void tell(const RequestContext& context, const wire::NameSpaces& request);
  void tell(const RequestContext& context, const wire::History& request);

  // The same for those who look at a page of it.
  wire::SessionsReply page(const NameSpace& name_space, const Viewer& viewer,
                           const wire::Sessions& request);
  /// targets  what the reply views
  wire::WaitersReply page(NameSpace& name_space, const Viewer& viewer, const wire::Waiters& request,
                          std::deque<std::string>& targets);
  wire::NameSpacesReply page(const Viewer& viewer, const wire::NameSpaces& request);

  // For those who look from the server's own process: core/watch/looks.cpp.

  /// One more piece of it, of bounded size, unless it is one large group.
  void go_on(const Look& look, Looked& looked);
  /// The same of all groups; each rank weighs 1.
  void go_on(Glances& glances, std::uint64_t weight_max);
  const History& history() const { return name_spaces_.history(); }
  Instant now() const { return services_.now(); }
  Instant start() const { return services_.clock().start(); }

  /// One more request of the operation with this index in the table.
  void count_request(std::size_t index) { ++operation_counts_[index]; }
  /// One more of what only guests ask; the index is that of its kind.
  void count_guest_request(std::size_t index) { ++guest_counts_[index]; }
  /// The rim has answered a request itself.
  void count_refused(wire::Operation operation, ErrorCode code) {
    services_.counted().tallies.outcomes.count(operation, static_cast<std::uint16_t>(code));
  }
  RimCounts& rim_counts() { return rim_counts_; }

  /// As they are now: some change while the server runs.
  const Options& options() const { return services_.options(); }
  Counts counts() const;
  /// With what the rim has counted.
  Snapshot snapshot() const;
  /// That, and all else that is counted.
  Report report() const;

 private:
  void go_on_in(NameSpace& name_space, const Look& look, Looked& looked);
  void go_on_with_waiting(const GroupsState& state, Looked& looked);
  void go_on_with_name_spaces(Looked& looked);
  void go_on_with_all_groups(Looked& looked);
  void go_on_with_history(const Look& look, Looked& looked);

  EngineServices& services_;
  NameSpaces& name_spaces_;
  const Sessions& sessions_;
  RimCounts rim_counts_;
  std::array<std::uint64_t, wire::operations_count> operation_counts_{};
  GuestCounts guest_counts_{};
};

}  // namespace muster::core
