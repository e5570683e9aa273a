#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/groups/groups_state.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::core {

/// All groups of one namespace: who is in, which epoch, which rounds and streams are open.
///
/// Every request is answered through the host, now or (parked) later. Life cycle of a group:
/// joiners gather (forming) -> all ranks are there: an epoch forms -> a member is lost: the epoch
/// is broken, everything in it fails -> survivors and candidates regroup: the next epoch forms
/// -> the last member goes: the group is deleted.
class Groups {
 public:
  Groups(EngineServices& services, const Accounts& accounts, Recorder recorder)
      : state_(services, accounts, recorder) {}
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  // Requests.
  void join(const RequestContext& context, const wire::Join& request);
  void leave(const RequestContext& context, const wire::Leave& request);
  /// Whether the session has a membership that such a request ends.
  bool may_leave(const Session& session, std::uint64_t epoch);
  void regroup(const RequestContext& context, const wire::Regroup& request);
  void cancel_regroup(const RequestContext& context, const wire::CancelRegroup& request);
  void members(const RequestContext& context, const wire::Members& request);
  void collective(const RequestContext& context, const wire::CollectiveCall& request);
  void cancel_round(const RequestContext& context, const wire::CancelRound& request);
  void interrupt(const RequestContext& context, const wire::Interrupt& request);
  void send(const RequestContext& context, const wire::Send& request);
  void receive(const RequestContext& context, const wire::Receive& request);
  void expire_data(const RequestContext& context, const wire::ExpireData& request);
  void recover(const RequestContext& context, const wire::Recover& request);
  void list(const RequestContext& context, const wire::Groups& request);
  void inspect(const RequestContext& context, const wire::InspectGroup& request);
  /// A page of it, for whoever may see so much.
  wire::GroupsReply page(const Viewer& viewer, std::string_view after) const;
  void list_objects(const RequestContext& context, const wire::List& request);

  // What replies would take that tell of all members of an epoch, and of all who are in a group or
  // want to be.
  std::uint64_t bytes_of_members(std::uint64_t epoch) const;
  std::uint64_t bytes_of_group(const Session& viewer, std::string_view name) const;

  // What happens to sessions.

  /// The client has the reply.
  void acknowledged(Session& session, const ReceivedObject& object);
  void acknowledged(Session& session, const RoundPart& part);
  void acknowledged(Session& session, const Membership& membership);
  /// The client has given up, and has no handle by this answer.
  void abandoned(Session& session, const Membership& membership);
  /// A byte of a session came on whose silence joiners wait (`claimants` > 0).
  void heard(Session& session);
  /// A session that others may wait to see die has lost its connection (`claimants` > 0).
  void disconnected(Session& session);
  /// The session is over; its parked requests are gone already. `cause` none: it left in order.
  /// why  of a loss, for those who ask later; null: the cause says it
  void session_ended(Session& session, LossCause cause, const Error* why);
  /// The session may not take part in groups any more. What it waited for has failed already.
  void right_removed(Session& session);
  /// A session resumed: it is told again of its broken epochs, and groups that waited for it form.
  void resumed(Session& session);
  /// A timer of kind objects, round, member or forming has fired. Static: a timer's owner knows its
  /// namespace, the engine does not.
  static void fired(Timer& timer);

  /// Whether there is a group that `viewer` may not know of.
  bool has_others(const Session& viewer) const;
  /// For those who look at them from the server's own process.
  const GroupsState& state() const { return state_; }
  std::size_t size() const { return state_.groups.size(); }
  /// Whether not even an epoch is left that ends in pieces.
  bool is_empty() const { return state_.groups.empty() && state_.ended.empty(); }

 private:
  /// Who a request comes from, in its epoch. None: the request has failed.
  struct Caller {
    Epoch* epoch = nullptr;
    Member* member = nullptr;
    explicit operator bool() const { return member != nullptr; }
  };

  std::optional<Error> refusal(const wire::Join& request) const;
  std::optional<Error> refusal_to_make(const Account& account) const;
  /// Null: there is none that `viewer` may know of.
  const Group* find(const Viewer& viewer, std::string_view name) const;
  Group* group_for(const RequestContext& context, const wire::Join& request);
  Epoch* epoch_of(std::uint64_t number) const;
  // They fail the request when the caller is nobody in the epoch; when it was lost or fenced; when
  // any member was lost.
  Caller any_member(const RequestContext& context, std::uint64_t epoch);
  Caller live_member(const RequestContext& context, std::uint64_t epoch);
  Caller unbroken_member(const RequestContext& context, std::uint64_t epoch);
  /// What has become of a member of `epoch` that regrouped; null: it did not.
  Member* moved_member(const Session& session, std::uint64_t epoch);
  /// The member of a later epoch whose process has the handle of `epoch` and no other; null: none.
  static Member* successor_of(const Session& session, std::uint64_t epoch);

  GroupsState state_;
};

}  // namespace muster::core
