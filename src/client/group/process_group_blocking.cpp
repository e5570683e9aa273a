#include "client/group/process_group_run.h"

// The blocking forms of a group's calls.

MUSTER_BEGIN_NAMESPACE

using client::Group;
using client::run_group;

Result<void> StatelessProcessGroup::send_bytes(Rank destination, std::uint32_t codec,
                                               std::string_view bytes, Tag tag, Duration timeout) {
  return run_group<void>(impl_, "send_obj", [&](Group& group) {
    return group.send_call(destination, codec, bytes, tag, timeout);
  });
}

Result<Delivery> StatelessProcessGroup::recv_delivery(Rank source, std::uint32_t codec, Tag tag,
                                                      Duration timeout) {
  return run_group<Delivery>(impl_, "recv_obj", [&](Group& group) {
    return group.receive_call(source, codec, tag, timeout);
  });
}

Result<ReceivedBytes> StatelessProcessGroup::recv_bytes(Rank source, std::uint32_t codec, Tag tag,
                                                        Duration timeout) {
  auto delivery = recv_delivery(source, codec, tag, timeout);
  if (!delivery) return std::move(delivery).error();
  return delivery->accept();
}

Result<std::string> StatelessProcessGroup::broadcast_bytes(std::string_view bytes,
                                                           std::uint32_t codec, Rank root,
                                                           Duration timeout) {
  return run_group<std::string>(impl_, "broadcast_obj", [&](Group& group) {
    return group.broadcast_call(bytes, codec, root, timeout);
  });
}

Result<std::vector<std::string>> StatelessProcessGroup::all_gather_bytes(std::string_view bytes,
                                                                         std::uint32_t codec,
                                                                         Duration timeout) {
  return run_group<std::vector<std::string>>(impl_, "all_gather_obj", [&](Group& group) {
    return group.all_gather_call(bytes, codec, timeout);
  });
}

Result<std::vector<std::string>> StatelessProcessGroup::gather_bytes(std::string_view bytes,
                                                                     std::uint32_t codec, Rank root,
                                                                     Duration timeout) {
  return run_group<std::vector<std::string>>(impl_, "gather_obj", [&](Group& group) {
    return group.gather_call(bytes, codec, root, timeout);
  });
}

Result<std::string> StatelessProcessGroup::scatter_bytes(Span<const std::string> bytes,
                                                         std::uint32_t codec, Rank root,
                                                         Duration timeout) {
  return run_group<std::string>(impl_, "scatter_obj", [&](Group& group) {
    return group.scatter_call(bytes, codec, root, timeout);
  });
}

Result<BarrierResult> StatelessProcessGroup::barrier(Duration timeout) {
  return run_group<BarrierResult>(impl_, "barrier",
                                  [&](Group& group) { return group.barrier_call(timeout); });
}

Result<void> StatelessProcessGroup::interrupt(std::string_view reason, Duration timeout) {
  return run_group<void>(impl_, "interrupt",
                         [&](Group& group) { return group.interrupt_call(reason, timeout); });
}

Result<std::vector<MemberInfo>> StatelessProcessGroup::members(Duration timeout) {
  return run_group<std::vector<MemberInfo>>(
      impl_, "members", [&](Group& group) { return group.members_call(timeout); });
}

Result<std::uint64_t> StatelessProcessGroup::expire_data(std::optional<Duration> older_than,
                                                         Duration timeout) {
  return run_group<std::uint64_t>(impl_, "expire_data", [&](Group& group) {
    return group.expire_data_call(older_than, timeout);
  });
}

Result<void> StatelessProcessGroup::leave(Duration timeout) {
  return run_group<void>(impl_, "leave", [&](Group& group) { return group.leave_call(timeout); });
}

Result<RecoveredRound> StatelessProcessGroup::recover(Duration timeout) {
  return run_group<RecoveredRound>(impl_, "recover",
                                   [&](Group& group) { return group.recover_call(timeout); });
}

MUSTER_END_NAMESPACE
