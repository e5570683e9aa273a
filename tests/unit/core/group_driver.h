#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine_driver.h"
#include "wire/error_body.h"

namespace muster::test {

/// An EngineDriver whose clients are ranks: it knows their connections and epochs, and can answer
/// for many of them at once.
class GroupDriver : public EngineDriver {
 public:
  explicit GroupDriver(core::Options options = {}) : EngineDriver(std::move(options)) {}

  /// `size` new clients that have formed the group; acknowledged, no effects are left.
  std::vector<core::ConnectionId> form(std::uint32_t size, std::string_view group = "g") {
    std::vector<core::ConnectionId> ranks;
    for (std::uint32_t rank = 0; rank < size; ++rank) ranks.push_back(connect());
    form(ranks, group);
    return ranks;
  }

  void form(const std::vector<core::ConnectionId>& ranks, std::string_view group) {
    const auto size = static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      call(ranks[rank], wire::Join{group, rank, size, std::chrono::hours(1), false, {}});
    }
    for (const core::Effect& effect : effects) {
      const auto* reply = std::get_if<core::SendReply>(&effect);
      if (reply == nullptr || reply->code != 0) continue;
      epoch = wire::decode_body<wire::FormedReply>(reply->head).value().epoch;
    }
    acknowledge_all();
  }

  /// A request that acknowledges nothing, with a timeout of 30 s unless it says otherwise.
  std::uint64_t call(core::ConnectionId connection, wire::RequestBody body,
                     Duration timeout = std::chrono::seconds(30)) {
    wire::Request request;
    request.id = next_request_id();
    request.timeout = timeout;
    request.body = std::move(body);
    apply(core::Requested{connection, &request});
    return request.id;
  }

  /// The number that the next `call` will have.
  std::uint64_t next_call_id() const { return last_request_id() + 1; }
  /// A connection's number that is not used yet.
  core::ConnectionId next_connection() { return ++last_resumed_; }

  std::uint64_t barrier(core::ConnectionId connection, std::uint64_t round,
                        Duration timeout = std::chrono::seconds(30)) {
    return call(connection, wire::CollectiveCall{epoch, round, wire::Collective::barrier, 0, 0, {}},
                timeout);
  }

  void acknowledge(core::ConnectionId connection, std::vector<std::uint64_t> request_ids) {
    apply(core::Acknowledged{connection, &request_ids});
  }

  /// Acknowledges the replies among the effects, and those that come of it, and forgets them all.
  void acknowledge_all() {
    while (!effects.empty()) {
      std::vector<core::Effect> seen;
      seen.swap(effects);
      for (const core::Effect& effect : seen) {
        const auto* reply = std::get_if<core::SendReply>(&effect);
        if (reply != nullptr) acknowledge(reply->connection, {reply->request_id});
      }
    }
  }

  /// The replies among the effects, by request; the other effects are dropped.
  std::map<std::uint64_t, core::SendReply> take_replies() {
    std::map<std::uint64_t, core::SendReply> replies;
    for (core::Effect& effect : effects) {
      if (auto* reply = std::get_if<core::SendReply>(&effect)) {
        const std::uint64_t id = reply->request_id;
        replies.emplace(id, std::move(*reply));
      }
    }
    effects.clear();
    return replies;
  }

  std::uint64_t epoch = 0;  ///< of the group that was formed last

 private:
  core::ConnectionId last_resumed_ = 100'000;
};

/// The error that the reply is; its code is 0 when it is none.
inline Error error_in(const core::SendReply& reply) {
  Error none;
  none.code = ErrorCode{};
  if (reply.code == 0) return none;
  return wire::decode_error(reply.code, body_of(reply)).value();
}

}  // namespace muster::test
