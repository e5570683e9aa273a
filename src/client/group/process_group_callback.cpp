#include "client/group/process_group_run.h"

// The callback forms of a group's calls.

MUSTER_BEGIN_NAMESPACE

using client::Group;
using client::run_group;

Call StatelessProcessGroup::send_bytes_async(Rank destination, std::uint32_t codec,
                                             std::string_view bytes, Tag tag, Duration timeout,
                                             Handler<void> handler) {
  return run_group<void>(impl_, "send_obj", std::move(handler), [&](Group& group) {
    return group.send_call(destination, codec, bytes, tag, timeout);
  });
}

Call StatelessProcessGroup::recv_bytes_async(Rank source, std::uint32_t codec, Tag tag,
                                             Duration timeout, Handler<ReceivedBytes> handler) {
  return recv_delivery_async(
      source, codec, tag, timeout, [handler = std::move(handler)](Result<Delivery> delivery) {
        Result<ReceivedBytes> received =
            delivery ? Result<ReceivedBytes>(delivery->accept()) : std::move(delivery).error();
        if (handler) handler(std::move(received));
      });
}

Call StatelessProcessGroup::recv_delivery_async(Rank source, std::uint32_t codec, Tag tag,
                                                Duration timeout, Handler<Delivery> handler) {
  return run_group<Delivery>(impl_, "recv_obj", std::move(handler), [&](Group& group) {
    return group.receive_call(source, codec, tag, timeout);
  });
}

Call StatelessProcessGroup::interrupt_async(std::string_view reason, Duration timeout,
                                            Handler<void> handler) {
  return run_group<void>(impl_, "interrupt", std::move(handler),
                         [&](Group& group) { return group.interrupt_call(reason, timeout); });
}

Call StatelessProcessGroup::broadcast_bytes_async(std::string_view bytes, std::uint32_t codec,
                                                  Rank root, Duration timeout,
                                                  Handler<std::string> handler) {
  return run_group<std::string>(impl_, "broadcast_obj", std::move(handler), [&](Group& group) {
    return group.broadcast_call(bytes, codec, root, timeout);
  });
}

Call StatelessProcessGroup::all_gather_bytes_async(std::string_view bytes, std::uint32_t codec,
                                                   Duration timeout,
                                                   Handler<std::vector<std::string>> handler) {
  return run_group<std::vector<std::string>>(
      impl_, "all_gather_obj", std::move(handler),
      [&](Group& group) { return group.all_gather_call(bytes, codec, timeout); });
}

Call StatelessProcessGroup::gather_bytes_async(std::string_view bytes, std::uint32_t codec,
                                               Rank root, Duration timeout,
                                               Handler<std::vector<std::string>> handler) {
  return run_group<std::vector<std::string>>(
      impl_, "gather_obj", std::move(handler),
      [&](Group& group) { return group.gather_call(bytes, codec, root, timeout); });
}

Call StatelessProcessGroup::scatter_bytes_async(Span<const std::string> bytes, std::uint32_t codec,
                                                Rank root, Duration timeout,
                                                Handler<std::string> handler) {
  return run_group<std::string>(impl_, "scatter_obj", std::move(handler), [&](Group& group) {
    return group.scatter_call(bytes, codec, root, timeout);
  });
}

Call StatelessProcessGroup::barrier_async(Duration timeout, Handler<BarrierResult> handler) {
  return run_group<BarrierResult>(impl_, "barrier", std::move(handler),
                                  [&](Group& group) { return group.barrier_call(timeout); });
}

Call StatelessProcessGroup::members_async(Duration timeout,
                                          Handler<std::vector<MemberInfo>> handler) {
  return run_group<std::vector<MemberInfo>>(
      impl_, "members", std::move(handler),
      [&](Group& group) { return group.members_call(timeout); });
}

Call StatelessProcessGroup::expire_data_async(std::optional<Duration> older_than, Duration timeout,
                                              Handler<std::uint64_t> handler) {
  return run_group<std::uint64_t>(impl_, "expire_data", std::move(handler), [&](Group& group) {
    return group.expire_data_call(older_than, timeout);
  });
}

Call StatelessProcessGroup::leave_async(Duration timeout, Handler<void> handler) {
  return run_group<void>(impl_, "leave", std::move(handler),
                         [&](Group& group) { return group.leave_call(timeout); });
}

Call StatelessProcessGroup::recover_async(Duration timeout, Handler<RecoveredRound> handler) {
  return run_group<RecoveredRound>(impl_, "recover", std::move(handler),
                                   [&](Group& group) { return group.recover_call(timeout); });
}

MUSTER_END_NAMESPACE
