#include "rank.h"

namespace muster::sim {

void Rank::problem(std::string what) {
  problems_.push_back("rank " + std::to_string(rank_) + ", round " + std::to_string(next_) + ": " +
                      std::move(what));
}

void Rank::unexpected(const std::string& what, const Error& error) {
  problem(what + ": " + std::string(name_of(error.code)) + " " + error.detail);
}

void Rank::call(const wire::RequestBody& body, Use use) {
  client_.call(body, plan_.patience, std::move(use));
}

void Rank::call_perhaps(const wire::RequestBody& body, Use use) {
  const auto id = client_.call(body, plan_.patience, std::move(use));
  if (!random_.one_in(6)) return;
  scheduler_.after(random_.between(Duration(0), std::chrono::milliseconds(20)), [this, id] {
    if (!client_.is_stopped()) client_.cancel(id);
  });
}

void Rank::join() {
  wire::Join request;
  request.group = "g";
  request.rank = rank_;
  request.world_size = plan_.world_size;
  request.data_expiration = std::chrono::hours(1);
  call(request, [this](const Reply& reply, protocol::Fate) {
    if (!reply) return unexpected("join", reply.error());
    state_ = std::make_unique<protocol::GroupState>(*wire::decode_body<wire::FormedReply>(*reply));
    send();
  });
}

void Rank::send() {
  const std::uint32_t to = (rank_ + 1) % plan_.world_size;
  const auto sequence = state_->begin_send(to, 0);
  if (!sequence) return unexpected("begin_send", sequence.error());
  if (*sequence != next_ - 1) return problem("an object has a wrong number");
  const std::string value = value_of(rank_);
  const wire::Send request{state_->formed().epoch, to, 0, *sequence, 1, value};
  call_perhaps(request, [this, to](const Reply& reply, protocol::Fate fate) {
    state_->end_send(to, 0, reply ? nullptr : &reply.error(), fate);
    if (reply) return receive();
    if (reply.error().code != ErrorCode::cancelled) return unexpected("send", reply.error());
    if (!state_->in_doubt()) return send();  // it never left
    recover([this, sent = state_->objects_sent()](const wire::RecoverReply&) {
      const bool arrived = state_->objects_sent() > sent;
      arrived ? receive() : send();
    });
  });
}

void Rank::receive() {
  const std::uint32_t from = (rank_ + plan_.world_size - 1) % plan_.world_size;
  const auto sequence = state_->begin_receive(from, 0);
  if (!sequence) return unexpected("begin_receive", sequence.error());
  const wire::Receive request{state_->formed().epoch, from, 0, *sequence, 1};
  call_perhaps(request, [this, from](const Reply& reply, protocol::Fate) {
    state_->end_receive(from, 0, reply ? nullptr : &reply.error());
    if (reply) {
      const auto object = wire::decode_body<wire::ReceiveReply>(*reply);
      if (object->value != value_of(from)) problem("another object was received");
      return take_part();
    }
    if (reply.error().code != ErrorCode::cancelled) return unexpected("receive", reply.error());
    receive();
  });
}

void Rank::take_part() {
  const auto round = state_->begin_round();
  if (!round) return unexpected("begin_round", round.error());
  if (*round != next_) return problem("a round has a wrong number");
  wire::CollectiveCall request;
  request.epoch = state_->formed().epoch;
  request.round = *round;
  request.collective = collective();
  request.root = request.collective == wire::Collective::barrier ||
                         request.collective == wire::Collective::all_gather
                     ? 0
                     : root();
  request.codec = 1;
  const std::string value = value_of(rank_);
  if (brings_value()) request.values = {value};
  call_perhaps(request, [this](const Reply& reply, protocol::Fate fate) {
    state_->end_round(reply ? nullptr : &reply.error(), fate);
    if (reply) return after_round(*wire::decode_body<wire::RoundReply>(*reply));
    if (reply.error().code != ErrorCode::cancelled) return unexpected("round", reply.error());
    if (!state_->in_doubt()) return take_part();
    recover([this](const wire::RecoverReply& recovered) {
      if (recovered.state == wire::RoundState::not_called) return take_part();
      if (recovered.state != wire::RoundState::done) return problem("a round failed");
      after_round(recovered.round);
    });
  });
}

void Rank::recover(std::function<void(const wire::RecoverReply& reply)> then) {
  const auto asked = state_->doubts();
  call(asked, [this, asked, then = std::move(then)](const Reply& reply, protocol::Fate) {
    if (!reply) return unexpected("recover", reply.error());
    const auto answer = wire::decode_body<wire::RecoverReply>(*reply);
    state_->resolve(asked, *answer);
    if (state_->in_doubt()) return problem("recover leaves doubts");
    ++recovered_count_;
    then(*answer);
  });
}

void Rank::after_round(const wire::RoundReply& reply) {
  const auto expected = expected_values();
  if (std::vector<std::string>(reply.values.begin(), reply.values.end()) != expected) {
    problem("a round gave other values");
  }
  if (state_->rounds() != next_) problem("the rounds are counted wrongly");
  if (next_ == plan_.round_count) return leave();
  ++next_;
  scheduler_.after(random_.between(Duration(0), std::chrono::seconds(2)), [this] { work(); });
}

void Rank::work() {
  if (client_.is_stopped()) {
    scheduler_.after(std::chrono::milliseconds(100), [this] { work(); });
  } else {
    send();
  }
}

void Rank::leave() {
  call(wire::Leave{state_->formed().epoch}, [this](const Reply& reply, protocol::Fate) {
    if (!reply) return unexpected("leave", reply.error());
    has_left_ = true;
  });
}

wire::Collective Rank::collective() const {
  if (next_ == plan_.round_count) return wire::Collective::barrier;  // nobody leaves before
  switch ((plan_.seed + next_ * 7) % 4) {
    case 0: return wire::Collective::broadcast;
    case 1: return wire::Collective::all_gather;
    case 2: return wire::Collective::gather;
    default: return wire::Collective::barrier;
  }
}

bool Rank::brings_value() const {
  const auto called = collective();
  if (called == wire::Collective::barrier) return false;
  return called != wire::Collective::broadcast || rank_ == root();
}

std::string Rank::value_of(std::uint32_t rank) const {
  return "value of " + std::to_string(rank) + " in " + std::to_string(next_);
}

std::vector<std::string> Rank::expected_values() const {
  const auto called = collective();
  if (called == wire::Collective::barrier) return {};
  if (called == wire::Collective::broadcast) {
    if (rank_ == root()) return {};
    return {value_of(root())};
  }
  if (called == wire::Collective::gather && rank_ != root()) return {};
  std::vector<std::string> values;
  for (std::uint32_t rank = 0; rank < plan_.world_size; ++rank) values.push_back(value_of(rank));
  return values;
}

}  // namespace muster::sim
