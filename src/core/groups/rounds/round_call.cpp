#include "core/groups/rounds/round_call.h"

#include "core/session/failure.h"

namespace muster::core {

RoundCall call_of(const wire::CollectiveCall& request) {
  return {request.collective, request.root, request.codec};
}

std::string text_of(const RoundCall& call) {
  if (call.collective == wire::Collective{}) return "interrupt";  // before anybody called it
  std::string text(wire::name_of(call.collective));
  const bool rooted = call.collective != wire::Collective::barrier &&
                      call.collective != wire::Collective::all_gather;
  if (rooted) text += " root=" + std::to_string(call.root);
  if (call.collective != wire::Collective::barrier) text += " codec=" + std::to_string(call.codec);
  return text;
}

std::optional<Error> refusal(const RequestContext& context, const Member& member,
                             const wire::CollectiveCall& request,
                             const wire::ServerLimits& limits) {
  const Roster& roster = member.roster;
  const auto invalid = [&](std::string detail) {
    return roster.error(ErrorCode::invalid_argument, std::move(detail));
  };
  if (request.round > member.next_round) {
    Error error = roster.error(ErrorCode::sequence_gap, "collectives are called in their order");
    error.expected = member.next_round;
    error.actual = request.round;
    return error;
  }
  if (request.round == 0) return invalid("rounds are counted from 1");
  if (context.timeout <= Duration::zero()) return invalid("a collective's timeout is above zero");
  if (request.root >= roster.world_size()) return invalid("the root is no rank of the group");
  const bool scatters = request.collective == wire::Collective::scatter;
  const std::size_t wanted = scatters ? roster.world_size() : 1;
  if (!request.values.empty() && request.values.size() != wanted) {
    return invalid(std::to_string(request.values.size()) + " values were given, not " +
                   std::to_string(wanted));
  }
  const bool brings = call_of(request).brings_value(member.rank);
  if (request.values.empty() == brings) {
    return invalid(brings ? "this rank's value is missing" : "this rank has no value to give");
  }
  for (const std::string_view value : request.values) {
    if (value.size() > limits.value_bytes_max) {
      return too_large("the value", value.size(), "bytes", limits.value_bytes_max,
                       "value_bytes_max");
    }
  }
  return std::nullopt;
}

}  // namespace muster::core
