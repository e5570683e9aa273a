#include "client/decode.h"
#include "client/group/delivery.h"
#include "client/group/group_call.h"

// Objects from one rank to another, numbered per destination or source and tag.

namespace muster::client {

PreparedCall<void> Group::send_call(Rank destination, std::uint32_t codec, std::string_view bytes,
                                    Tag tag, Duration timeout) {
  auto made = call<void>("send_obj", timeout);
  const auto peer = static_cast<std::uint32_t>(destination.number);
  made.body = wire::Send{epoch(), peer, tag.number, 0, codec, bytes};
  made.decode = decoder<void, wire::Send>(read_nothing);
  if (!check_rank(*this, made, "destination", destination)) return made;
  if (!check(made)) {
    made.context.stream = numbers_.next_to(destination, tag);
    return made;
  }
  made.ticket.settle = [self = shared_from_this(), peer, tag](const Outcome& outcome) {
    self->numbers_.with_state([&](protocol::GroupState& state) {
      state.end_send(peer, tag.number, error_of(outcome), outcome.fate);
    });
  };
  const auto sequence = numbers_.give(
      made, [&](protocol::GroupState& state) { return state.begin_send(peer, tag.number); });
  if (sequence) {
    std::get<wire::Send>(made.body).sequence = *sequence;
    made.context.stream = StreamPosition{rank(), destination.number, tag.number, *sequence};
  } else {
    made.context.stream = numbers_.next_to(destination, tag);
  }
  return made;
}

PreparedCall<Delivery> Group::receive_call(Rank source, std::uint32_t codec, Tag tag,
                                           Duration timeout) {
  auto made = call<Delivery>("recv_obj", timeout);
  const auto peer = static_cast<std::uint32_t>(source.number);
  made.body = wire::Receive{epoch(), peer, tag.number, 0, codec};
  if (!check_rank(*this, made, "source", source)) return made;
  if (!check(made)) {
    made.context.stream = numbers_.next_from(source, tag);
    return made;
  }
  const auto delivery = std::make_shared<Delivery::Impl>(shared_from_this(), source, tag);
  made.decode = [delivery](std::string&& body) -> Result<Delivery> {
    auto reply = wire::decode_body<wire::ReplyTo<wire::Receive>>(body);
    if (!reply) return std::move(reply).error();
    const std::uint64_t number = reply->sequence;
    delivery->take({cut_out(body, reply->value), number});
    return Delivery(delivery);
  };
  made.ticket.receipt = protocol::Receipt::by_caller;
  made.ticket.settle = [delivery](const Outcome& outcome) { delivery->settle(outcome); };
  const auto sequence = numbers_.give(
      made, [&](protocol::GroupState& state) { return state.begin_receive(peer, tag.number); });
  if (sequence) {
    std::get<wire::Receive>(made.body).sequence = *sequence;
    made.context.stream = StreamPosition{source.number, rank(), tag.number, *sequence};
  } else {
    made.context.stream = numbers_.next_from(source, tag);
  }
  return made;
}

PreparedCall<std::uint64_t> Group::expire_data_call(std::optional<Duration> older_than,
                                                    Duration timeout) {
  auto made = call<std::uint64_t>("expire_data", timeout);
  if (older_than && *older_than < Duration::zero() && !made.refused) {
    made.refused = invalid_argument("older_than: not negative");
  }
  made.body = wire::ExpireData{epoch(), older_than.value_or(formed_.data_expiration)};
  made.decode =
      decoder<std::uint64_t, wire::ExpireData>([](const wire::NumberReply& reply, const auto&) {
        return static_cast<std::uint64_t>(reply.number);
      });
  check(made);
  return made;
}

}  // namespace muster::client
