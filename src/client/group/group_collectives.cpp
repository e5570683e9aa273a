#include "client/decode.h"
#include "client/group/group_call.h"
#include "client/group/round_values.h"

// The collectives: each call is this rank's part of one round.

namespace muster::client {
namespace {

using RankValues = std::vector<std::string>;

auto all_values(int count) {
  return
      [count](const std::string& body) { return values_of(body, static_cast<std::size_t>(count)); };
}

auto one_value(std::optional<std::string> own) {
  return [own = std::move(own)](std::string&& body) mutable {
    return value_of(std::move(body), std::move(own));
  };
}

}  // namespace

template <class T, class Decode>
PreparedCall<T> Group::collective(std::string_view operation, wire::CollectiveCall body,
                                  Duration timeout, Decode decode) {
  auto made = call<T>(operation, timeout);
  if (!made.refused && made.timeout == Duration::zero()) {
    made.refused = invalid_argument("timeout: above zero, others have to come");
  }
  check_rank(*this, made, "root", Rank(static_cast<int>(body.root)));
  body.epoch = epoch();
  made.body = std::move(body);
  made.decode = std::move(decode);
  if (!check(made)) return made;
  made.ticket.settle = [self = shared_from_this()](const Outcome& outcome) {
    self->numbers_.with_state(
        [&](protocol::GroupState& state) { state.end_round(error_of(outcome), outcome.fate); });
    const Error* const error = error_of(outcome);
    const bool is_interrupted = error != nullptr && error->code == ErrorCode::interrupted;
    if (is_interrupted && !self->is_gone_) self->losses_.interrupted(*error);
  };
  const auto round =
      numbers_.give(made, [](protocol::GroupState& state) { return state.begin_round(); });
  if (!round) return made;
  std::get<wire::CollectiveCall>(made.body).round = *round;
  made.context.round = *round;
  made.ticket.cancellation = wire::CancelRound{epoch(), *round};
  return made;
}

PreparedCall<std::string> Group::broadcast_call(std::string_view bytes, std::uint32_t codec,
                                                Rank root, Duration timeout) {
  wire::CollectiveCall body;
  body.collective = wire::Collective::broadcast;
  body.root = static_cast<std::uint32_t>(root.number);
  body.codec = codec;
  std::optional<std::string> own;
  if (root.number == rank()) {
    body.values.push_back(bytes);
    own = bytes;
  }
  return collective<std::string>("broadcast_obj", std::move(body), timeout,
                                 one_value(std::move(own)));
}

PreparedCall<std::vector<std::string>> Group::all_gather_call(std::string_view bytes,
                                                              std::uint32_t codec,
                                                              Duration timeout) {
  wire::CollectiveCall body;
  body.collective = wire::Collective::all_gather;
  body.codec = codec;
  body.values.push_back(bytes);
  return collective<RankValues>("all_gather_obj", std::move(body), timeout,
                                all_values(world_size()));
}

PreparedCall<std::vector<std::string>> Group::gather_call(std::string_view bytes,
                                                          std::uint32_t codec, Rank root,
                                                          Duration timeout) {
  wire::CollectiveCall body;
  body.collective = wire::Collective::gather;
  body.root = static_cast<std::uint32_t>(root.number);
  body.codec = codec;
  body.values.push_back(bytes);
  return collective<RankValues>("gather_obj", std::move(body), timeout,
                                all_values(root.number == rank() ? world_size() : 0));
}

PreparedCall<std::string> Group::scatter_call(Span<const std::string> bytes, std::uint32_t codec,
                                              Rank root, Duration timeout) {
  wire::CollectiveCall body;
  body.collective = wire::Collective::scatter;
  body.root = static_cast<std::uint32_t>(root.number);
  body.codec = codec;
  std::optional<std::string> own;
  if (root.number == rank()) {
    if (bytes.size() != static_cast<std::size_t>(world_size())) {
      auto refused = call<std::string>("scatter_obj", timeout);
      refused.refused = invalid_argument(std::to_string(bytes.size()) + " objects for " +
                                         std::to_string(world_size()) + " ranks");
      return refused;
    }
    body.values.assign(bytes.begin(), bytes.end());
    own = bytes[static_cast<std::size_t>(root.number)];
  }
  return collective<std::string>("scatter_obj", std::move(body), timeout,
                                 one_value(std::move(own)));
}

PreparedCall<BarrierResult> Group::barrier_call(Duration timeout) {
  wire::CollectiveCall body;
  body.collective = wire::Collective::barrier;
  return collective<BarrierResult>(
      "barrier", std::move(body), timeout,
      decoder<BarrierResult, wire::CollectiveCall>([](wire::RoundReply& reply, const auto&) {
        return BarrierResult{std::move(reply.unconfirmed)};
      }));
}

}  // namespace muster::client
