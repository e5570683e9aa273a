#include "group_work.h"

#include "body.h"

// Life of a handle: joined -> rounds and objects, over and over -> somebody is lost or leaves:
// regrouped, which is the next handle -> or it is over (fenced, stale, its session ended): joined
// anew. One call at a time, but for the objects that are sent.

namespace muster::sim {
namespace {

using namespace std::chrono_literals;
using protocol::Fate;

const Error* error_of(const Result<std::string>& reply) { return reply ? nullptr : &reply.error(); }

constexpr int failed_regroups_max = 4;

}  // namespace

GroupWork::GroupWork(Process& process, const GroupPlan& group, std::uint32_t rank)
    : process_(process),
      group_(group),
      rank_(rank),
      id_(process.identity().name_space + "/" + group.name) {}

void GroupWork::begin() {
  next_soon(2s);
  destroy_handle_some_time();
}

/// Who is in many groups does not do more in all.
void GroupWork::next_soon(Duration longest) {
  const auto groups = static_cast<Duration::rep>(town().plan.groups[0].size());
  process_.later(random().between(Duration(0), longest * groups), [this] { next(); });
}

void GroupWork::session_ended() {
  if (!state_) return;
  state_.reset();
  ++life_;
  interruption_in_doubt_ = false;
  needs_regroup_ = false;
  gone_.clear();
}

void GroupWork::leave(std::function<void()> then) { leaving_ = std::move(then); }

GroupModel::Place GroupWork::place() const {
  return {{incarnation_, state_->formed().epoch}, state_->formed().rank};
}

Duration GroupWork::patience() {
  return random().one_in(15) ? random().between(50ms, 1s) : random().between(5s, 20s);
}

std::uint64_t GroupWork::ask(const std::string& what, const wire::RequestBody& body,
                             Duration timeout, std::uint64_t round, Use use) {
  Ask about;
  about.what = what;
  about.timeout = timeout;
  about.round = round;
  about.group = id_;
  if (state_) {
    about.epoch = state_->formed().epoch;
    about.what += " in epoch " + std::to_string(about.epoch);
  }
  return process_.ask(std::move(about), body, std::move(use));
}

void GroupWork::cancel_perhaps(std::uint64_t call, std::uint64_t one_in) {
  if (!random().one_in(one_in)) return;
  process_.later(random().between(Duration(0), 300ms), [this, call] { process_.cancel(call); });
}

/// The one place that decides what comes next; every call's end leads here.
void GroupWork::next() {
  if (is_busy_) return;
  if (process_.client().failure() != nullptr || process_.client().incarnation() == 0) {
    if (leaving_ && state_ == nullptr) return leaving_();
    return next_soon(1s);
  }
  if (leaving_) return state_ ? go() : leaving_();
  if (town().is_closing) return next_soon(1s);
  if (!state_) return join();
  if (random().one_in(needs_regroup_ ? 3 : 40)) look_at_members();
  if (needs_regroup_ || state_->ended() != nullptr) return regroup();
  if (state_->in_doubt()) return recover();
  switch (random().below(400)) {
    case 0: return go();
    case 1: return regroup();
    case 2:
    case 3:
    case 4:
    case 5: haunt(); break;
    case 6:
    case 7:
    case 8:
    case 9: expire(); break;
    case 10:
    case 11:
    case 12: interrupt(); break;
    default: break;
  }
  const std::uint64_t choice = random().below(10);
  if (choice < 2) return send();
  if (choice < 4) return receive();
  round();
}

void GroupWork::learn(const Error& error) {
  if (state_ && error.epoch == state_->formed().epoch) note_gone(error);
  switch (error.code) {
    case ErrorCode::rank_lost:
    case ErrorCode::rank_left: needs_regroup_ = true; break;
    case ErrorCode::fenced:
    case ErrorCode::stale_epoch: destroy_handle(); break;
    default: break;
  }
}

void GroupWork::join() {
  const std::string info = "of " + std::to_string(process_.identity().process);
  wire::Join request;
  request.group = group_.name;
  request.rank = rank_;
  request.world_size = static_cast<std::uint32_t>(group_.slots.size());
  request.data_expiration = group_.data_expiration;
  request.info = info;
  // All joins that wait are of one joiner, which is a standby or not.
  if (second_joins_count_ == 0) is_standby_ = random().one_in(3);
  request.standby = is_standby_;
  is_busy_ = true;
  model().join_begins(id_, process_.number(), request.rank);
  if (random().one_in(16)) {  // two threads of it join at the same time
    model().second_join_begins(id_, process_.number());
    ++second_joins_count_;
    ask("second join of " + id_ + " as " + std::to_string(request.rank), request, patience(), 0,
        [this](const Reply& reply, Fate) {
          --second_joins_count_;
          joined_without_handle(reply);
        });
  }
  ++joins_count_;
  ++joins_made_;
  cancel_perhaps(
      ask("join of " + id_ + " as " + std::to_string(request.rank), request, patience(), 0,
          [this](const Reply& reply, Fate) {
            is_busy_ = false;
            --joins_count_;
            if (reply && random().one_in(20)) {
              joined_without_handle(reply);
            } else if (reply) {
              formed(reply, true);
            } else {
              model().may_leave(id_, process_.number());
            }
            next_soon(town().plan.thinking_max);
          }),
      8);
}

/// Another one has the handle, or its caller has no use for it: then the membership ends.
void GroupWork::joined_without_handle(const Reply& reply) {
  const bool has_handle =
      reply && state_ && body_of<wire::FormedReply>(*reply).epoch == state_->formed().epoch;
  if (has_handle) return;
  process_.client().refuse_answer();
  model().may_leave(id_, process_.number());
}

/// At any moment, also while nothing reaches the server.
void GroupWork::destroy_handle_some_time() {
  process_.later(random().between(5s, 120s), [this] {
    if (!leaving_ && !town().is_closing) destroy_handle();
    destroy_handle_some_time();
  });
}

void GroupWork::destroy_handle() {
  if (!state_) return;
  model().leave_begins(id_, place().epoch, process_.number());
  ++leaves_count_;
  process_.leave(state_->formed().epoch, [this, at = place().epoch](bool is_done) {
    --leaves_count_;
    if (is_done) model().left(at);
  });
  session_ended();
}

void GroupWork::formed(const Reply& reply, bool keeps_ranks) {
  const auto formed = body_of<wire::FormedReply>(*reply);
  std::optional<GroupModel::Place> before;
  if (state_) before = place();
  if (before && before->epoch.second != formed.epoch) before_ = before;
  incarnation_ = process_.client().incarnation();
  model().formed(process_.number(), id_, incarnation_, formed, before, keeps_ranks);
  state_ = std::make_unique<protocol::GroupState>(formed);
  ++life_;
  needs_regroup_ = false;
  gone_.clear();
  failed_regroups_ = 0;
}

void GroupWork::regroup() {
  if (failed_regroups_ > failed_regroups_max) return go();
  const auto attempt = state_->begin_regroup();
  if (!attempt) {
    destroy_handle();
    return next_soon(1s);
  }
  const std::uint64_t kind = town().plan.agreed(state_->formed().epoch, 1) % 8;
  wire::Regroup request;
  request.epoch = state_->formed().epoch;
  request.attempt = *attempt;
  request.next_round = state_->rounds() + 1;
  if (kind < 3) request.new_size = static_cast<std::uint32_t>(group_.slots.size());
  if (kind > 5) request.new_size = wire::Regroup::everyone;
  request.min_size = kind == 0 || kind == 5 || kind == 7 ? 1 : 0;
  if (request.min_size != 0) town().oracle.may_fence();
  model().regroup_begins(place().epoch);
  is_busy_ = true;
  const bool keeps_ranks = kind == 1 || kind == 2;
  const Duration timeout = random().one_in(4) ? random().between(50ms, 1s) : patience();
  const std::uint64_t call = ask("regroup " + std::to_string(request.new_size), request, timeout, 0,
                                 [this, keeps_ranks, life = life_](const Reply& reply, Fate fate) {
                                   is_busy_ = false;
                                   if (life != life_) {  // it leaves the next epoch, too
                                     process_.client().refuse_answer();
                                   } else {
                                     state_->end_regroup(error_of(reply), fate);
                                     ++failed_regroups_;
                                     if (reply) formed(reply, keeps_ranks);
                                     if (!reply) learn(reply.error());
                                   }
                                   next_soon(town().plan.thinking_max);
                                 });
  cancel_perhaps(call, 4);
  cancel_regroup_perhaps(request.attempt, call);
}

void GroupWork::recover() {
  const auto asked = state_->doubts();
  is_busy_ = true;
  ask("recover round " + std::to_string(asked.round), asked, patience(), asked.round,
      [this, asked, life = life_, begun = town().scheduler.now()](const Reply& reply, Fate) {
        is_busy_ = false;
        next_soon(town().plan.thinking_max);
        if (life != life_) return;
        if (!reply) return learn(reply.error());
        const auto answer = body_of<wire::RecoverReply>(*reply);
        state_->resolve(asked, answer);
        if (asked.round == 0) return;
        if (answer.state == wire::RoundState::done) {
          model().round_done(place(), asked.round, answer.round, begun);
        } else if (answer.state == wire::RoundState::failed) {
          model().round_failed(place(), asked.round, *answer.error);
          learn(*answer.error);
        }
      });
}

/// What all ranks call in this round, but for the few who err.
RoundCall GroupWork::round_call(std::uint64_t round) {
  const wire::FormedReply& formed = state_->formed();
  std::uint64_t kind = town().plan.agreed(formed.epoch, round) % 5;
  if (random().one_in(300)) {
    kind = random().below(5);
    model().deviates(place().epoch);
  }
  sim::RoundCall call;
  call.collective = static_cast<wire::Collective>(1 + kind);
  const bool is_rooted = call.collective != wire::Collective::barrier &&
                         call.collective != wire::Collective::all_gather;
  if (is_rooted) call.root = static_cast<std::uint32_t>(round % formed.world_size);
  const bool is_root = call.root == formed.rank;
  const std::string value = "e" + std::to_string(formed.epoch) + "r" + std::to_string(round) +
                            "by" + std::to_string(formed.rank) + "#" +
                            std::to_string(++town().uses);
  if (call.collective == wire::Collective::scatter) {
    for (std::uint32_t rank = 0; is_root && rank < formed.world_size; ++rank) {
      call.values.push_back(value + "to" + std::to_string(rank));
    }
  } else if (call.collective != wire::Collective::barrier) {
    if (is_root || call.collective != wire::Collective::broadcast) call.values = {value};
  }
  return call;
}

void GroupWork::round() {
  const auto number = state_->begin_round();
  if (!number) {
    if (interruption_in_doubt_) interrupt();
    learn(number.error());
    return next_soon(1s);
  }
  const std::uint64_t round = *number;
  const sim::RoundCall called = round_call(round);
  wire::CollectiveCall request;
  request.epoch = state_->formed().epoch;
  request.round = round;
  request.collective = called.collective;
  request.root = called.root;
  request.codec = 1;
  request.values.assign(called.values.begin(), called.values.end());
  const Duration timeout = patience();
  model().round_begins(place(), process_.number(), round, called, timeout);
  is_busy_ = true;
  const std::uint64_t call = ask(
      std::string(wire::name_of(called.collective)) + " round " + std::to_string(round), request,
      timeout, round,
      [this, round, life = life_, begun = town().scheduler.now()](const Reply& reply, Fate fate) {
        is_busy_ = false;
        next_soon(town().plan.thinking_max);
        if (life == life_) round_ended(round, begun, reply, fate);
      });
  cancel_round_perhaps(round, call);
}

void GroupWork::round_ended(std::uint64_t round, Instant begun, const Reply& reply, Fate fate) {
  state_->end_round(error_of(reply), fate);
  if (reply) return model().round_done(place(), round, body_of<wire::RoundReply>(*reply), begun);
  const Error& error = reply.error();
  if (fate == Fate::answered && error.round != 0) {
    if (error.round != round) town().oracle.problem("an error of another round");
    model().round_failed(place(), round, error);
  } else if (fate != Fate::in_doubt) {
    model().round_refused(place(), round);
  }
  learn(error);
}

void GroupWork::cancel_round_perhaps(std::uint64_t round, std::uint64_t call) {
  if (random().one_in(8)) return cancel_perhaps(call);
  if (!random().one_in(60)) return;
  process_.later(random().between(Duration(0), 300ms), [this, round, call, life = life_] {
    if (life != life_ || !town().oracle.is_pending(call)) return;
    if (random().one_in(4)) return interrupt();
    model().cancel_begins(place().epoch, round);
    ask("cancel round " + std::to_string(round), wire::CancelRound{place().epoch.second, round}, 5s,
        round, [](const Reply&, Fate) {});
  });
}

/// Beside whatever else it does.
void GroupWork::interrupt() {
  const auto number = state_->begin_interruption();
  if (!number) return;
  model().interruption_begins(place());
  const wire::Interrupt request{state_->formed().epoch, *number, "it has to think"};
  cancel_perhaps(
      ask("interrupt", request, patience(), 0, [this, life = life_](const Reply& reply, Fate fate) {
        if (life != life_) return;
        std::uint64_t round = 0;
        if (reply) {
          const auto failed = body_of<wire::NumberReply>(*reply).number;
          round = static_cast<std::uint64_t>(failed);
        }
        state_->end_interruption(round, error_of(reply), fate);
        interruption_in_doubt_ = fate == Fate::in_doubt;
        if (!reply) learn(reply.error());
      }));
}

void GroupWork::send() {
  const wire::FormedReply& formed = state_->formed();
  const auto to = static_cast<std::uint32_t>(random().below(formed.world_size));
  const std::uint64_t tag = random().below(2);
  const GroupModel::Stream stream{place().epoch, formed.rank, to, tag};
  const std::uint64_t count = random().one_in(4) ? 3 : 1;
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto sequence = state_->begin_send(to, tag);
    if (!sequence) break;
    const std::string value = "o" + std::to_string(*sequence) + "#" + std::to_string(++town().uses);
    model().send_begins(stream, *sequence, value);
    cancel_perhaps(
        ask("send " + value + " to " + std::to_string(to),
            wire::Send{formed.epoch, to, tag, *sequence, 1, value}, patience(), 0,
            [this, stream, sequence = *sequence, life = life_](const Reply& reply, Fate fate) {
              if (reply) model().sent(stream, sequence);
              if (!reply && fate != Fate::in_doubt) {
                model().send_refused(stream, sequence);
              }
              if (life != life_) return;
              state_->end_send(stream.destination, stream.tag, error_of(reply), fate);
              if (!reply) learn(reply.error());
            }));
  }
  next_soon(town().plan.thinking_max);
}

void GroupWork::receive() {
  const wire::FormedReply& formed = state_->formed();
  const auto from = static_cast<std::uint32_t>(random().below(formed.world_size));
  const std::uint64_t tag = random().below(2);
  const auto sequence = state_->begin_receive(from, tag);
  if (!sequence) return next_soon(1s);
  const GroupModel::Stream stream{place().epoch, from, formed.rank, tag};
  const bool is_there = model().sent_count(stream) > *sequence;
  is_busy_ = true;
  const Duration timeout = random().one_in(3) ? Duration(0) : random().between(10ms, 1s);
  cancel_perhaps(ask("receive " + std::to_string(*sequence) + " from " + std::to_string(from),
                     wire::Receive{formed.epoch, from, tag, *sequence, 1}, timeout, 0,
                     [this, stream, sequence = *sequence, is_there, life = life_,
                      asked = town().scheduler.now()](const Reply& reply, Fate) {
                       is_busy_ = false;
                       next_soon(town().plan.thinking_max);
                       if (life != life_) return;
                       state_->end_receive(stream.source, stream.tag, error_of(reply));
                       if (reply) {
                         const auto object = body_of<wire::ReceiveReply>(*reply);
                         if (object.sequence != sequence)
                           town().oracle.problem("another object's number");
                         return model().received(stream, object.sequence, object.value, asked);
                       }
                       const ErrorCode code = reply.error().code;
                       if (code == ErrorCode::expired) {
                         model().expired(stream, sequence, group_.data_expiration);
                       }
                       const bool is_nothing = code == ErrorCode::timed_out ||
                                               code == ErrorCode::not_found ||
                                               code == ErrorCode::rank_left;
                       if (is_nothing && is_there)
                         town().oracle.problem("an object that was sent is not there");
                       learn(reply.error());
                     }));
}

/// Leaves; without an answer, or when there is no memory for one, it tries again.
void GroupWork::go() {
  model().leave_begins(id_, place().epoch, process_.number());
  is_busy_ = true;
  ask("leave", wire::Leave{state_->formed().epoch}, patience(), 0,
      [this, life = life_](const Reply& reply, Fate fate) {
        is_busy_ = false;
        next_soon(town().plan.thinking_max);
        if (life != life_) return;
        if (reply) model().left(place().epoch);
        const bool is_refused = !reply && reply.error().code == ErrorCode::resource_exhausted;
        if (reply) session_ended();
        if (!reply && fate == Fate::answered && !is_refused) destroy_handle();
      });
}

}  // namespace muster::sim
