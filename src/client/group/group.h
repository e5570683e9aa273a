#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/call.h"
#include "client/cancel_mark.h"
#include "client/group/call_numbers.h"
#include "client/group/group_losses.h"
#include "client/link/link.h"
#include "muster/process_group.h"

namespace muster::client {

/// One epoch of a group as this process takes part in it, and its calls. CallNumbers has the
/// numbers that they carry, GroupLosses who hears of losses.
///
/// Life cycle: made on the I/O thread with the reply that formed it, so that no event can come
/// before -> called -> gone: it has left, was regrouped, or its session is over. Pending calls keep
/// it; the handle that goes makes it leave.
class Group final : public EpochWatcher, public std::enable_shared_from_this<Group> {
 public:
  /// errors  busy (a handle of that epoch lives on this link)
  static Result<std::shared_ptr<Group>> create(std::shared_ptr<Link> link, std::string name,
                                               const GroupOptions& options,
                                               const wire::FormedReply& formed);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::shared_ptr<Link>& link() const { return link_; }
  const std::string& name() const { return *name_; }
  std::uint64_t epoch() const { return formed_.epoch; }
  int rank() const { return static_cast<int>(formed_.rank); }
  int world_size() const { return static_cast<int>(formed_.world_size); }
  CallNumbers& numbers() { return numbers_; }

  void cancel() noexcept { link_->cancel(*mark_); }

  /// Who hears of what ends this epoch, or this handle.
  GroupLosses& losses() { return losses_; }

  /// Leaves without waiting, unless it is gone.
  void leave_unasked();

  // Its calls. What they view must live until they are submitted.

  PreparedCall<void> send_call(Rank destination, std::uint32_t codec, std::string_view bytes,
                               Tag tag, Duration timeout);
  PreparedCall<Delivery> receive_call(Rank source, std::uint32_t codec, Tag tag, Duration timeout);
  PreparedCall<std::string> broadcast_call(std::string_view bytes, std::uint32_t codec, Rank root,
                                           Duration timeout);
  PreparedCall<std::vector<std::string>> all_gather_call(std::string_view bytes,
                                                         std::uint32_t codec, Duration timeout);
  PreparedCall<std::vector<std::string>> gather_call(std::string_view bytes, std::uint32_t codec,
                                                     Rank root, Duration timeout);
  PreparedCall<std::string> scatter_call(Span<const std::string> bytes, std::uint32_t codec,
                                         Rank root, Duration timeout);
  PreparedCall<BarrierResult> barrier_call(Duration timeout);

  PreparedCall<std::vector<MemberInfo>> members_call(Duration timeout);
  PreparedCall<std::uint64_t> expire_data_call(std::optional<Duration> older_than,
                                               Duration timeout);
  PreparedCall<std::shared_ptr<Group>> regroup_call(const RegroupOptions& options,
                                                    Duration timeout);
  PreparedCall<void> interrupt_call(std::string_view reason, Duration timeout);
  PreparedCall<void> leave_call(Duration timeout);
  PreparedCall<RecoveredRound> recover_call(Duration timeout);

  /// Of a group that is not formed yet.
  static PreparedCall<std::shared_ptr<Group>> join_call(std::shared_ptr<Link> link,
                                                        std::string_view name, int rank,
                                                        int world_size,
                                                        const GroupOptions& options);

 private:
  Group(std::shared_ptr<Link> link, std::string name, const GroupOptions& options,
        const wire::FormedReply& formed);

  void on_event(const wire::Event& event) override;

  template <class T>
  PreparedCall<T> call(std::string_view operation, Duration timeout);
  template <class T>
  bool check(PreparedCall<T>& call);
  template <class T>
  void refuse_if_ended(PreparedCall<T>& call);
  template <class T, class Decode>
  PreparedCall<T> collective(std::string_view operation, wire::CollectiveCall body,
                             Duration timeout, Decode decode);
  void end(Error why);

  const std::shared_ptr<Link> link_;
  const std::shared_ptr<const std::string> name_;  ///< shared with its calls
  const GroupOptions options_;
  const wire::FormedReply formed_;
  const std::shared_ptr<CancelMark> mark_ = std::make_shared<CancelMark>();

  CallNumbers numbers_;
  GroupLosses losses_;
  std::atomic<bool> is_gone_{false};
};

}  // namespace muster::client
