#include "witness.h"

#include <algorithm>
#include <functional>

#include "body.h"
#include "oracle.h"

// What can be told from the server's own words: who holds which rank of which epoch, what a round
// has come to, which requests wait. The oracle judges what reaches the callers, and by whose fault.

namespace muster::sim {
namespace {

using namespace std::chrono_literals;
using wire::Operation;

/// What a request that waits may take longer than it has: one look of the rim, and a pause of it.
constexpr Duration late_max = 500ms;

/// What each session may have beyond the end of the reserve: an answer that is kept, and one that
/// is being sent.
constexpr std::uint64_t bytes_allowed = 4096;

/// Whose answers are kept, and given again, until they are acknowledged: as docs/protocol.md says,
/// and not as the table of operations does.
bool keeps_answer(Operation operation) {
  switch (operation) {
    case wire::operation<wire::Get>:
    case wire::operation<wire::Exists>:
    case wire::operation<wire::Wait>:
    case wire::operation<wire::MultiGet>:
    case wire::operation<wire::List>:
    case wire::operation<wire::Members>: return false;
    case wire::operation<wire::DropNameSpace>:
    case wire::operation<wire::QueuePush>:
    case wire::operation<wire::QueuePop>:
    case wire::operation<wire::EndSession>: return true;
    default: return operation < wire::operation<wire::Status>;
  }
}

/// Of those, the ones that are carried out again where nothing came of them the first time.
bool may_differ(Operation operation) {
  return operation == wire::operation<wire::Receive> || operation == wire::operation<wire::Recover>;
}

/// Nothing was done.
bool is_refusal(std::uint16_t code) {
  return code == static_cast<std::uint16_t>(ErrorCode::resource_exhausted) ||
         code == static_cast<std::uint16_t>(ErrorCode::permission_denied);
}

/// A collective that was not taken does not count.
bool is_turned_away(std::uint16_t code) {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::resource_exhausted:
    case ErrorCode::busy:
    case ErrorCode::sequence_gap:
    case ErrorCode::invalid_argument: return true;
    default: return false;
  }
}

/// What all ranks of a round are told alike.
bool is_outcome(std::uint16_t code) {
  if (code == 0) return true;
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::timed_out:
    case ErrorCode::cancelled:
    case ErrorCode::too_large: return true;
    default: return false;
  }
}

}  // namespace

Witness::Witness(Oracle& oracle, core::Options options)
    : oracle_(oracle), options_(std::move(options)) {}

void Witness::problem(const std::string& what) { oracle_.problem("the server: " + what); }

void Witness::started() {
  sessions_.clear();
  blanks_.clear();
  connected_.clear();
  epochs_.clear();
  rounds_.clear();
  newest_.clear();
  sure_count_ = unsure_count_ = 0;
  fresh_.reset();
  deadlines_ = {};
  next_look_ = Duration::max();
  tellings_.clear();
  lost_.clear();
  streams_.clear();
  touched_stream_.reset();
  touched_groups_.clear();
  key_waits_.clear();
  present_.clear();
  doubtful_.clear();
  written_.clear();
  taken_.clear();
}

Witness::Session* Witness::session_on(Connection connection) {
  const auto found = connected_.find(connection);
  return found == connected_.end() ? nullptr : found->second;
}

void Witness::greeted(Connection connection, const wire::ClientHello& hello,
                      const wire::ServerHello& answer) {
  if (answer.status != 0) return;
  const auto [place, is_new] = sessions_.try_emplace(answer.session_id);
  Session& session = place->second;
  const bool is_begun = is_new && !comes_back_blank(answer.session_id);
  if (is_begun == (hello.session_id != 0)) problem("a session is resumed that is not there");
  if (session.connection != 0) closed(session.connection);
  session.id = answer.session_id;
  session.name_space = hello.name_space;
  session.connection = connection;
  connected_[connection] = &session;
  heard(connection);
}

void Witness::closed(Connection connection) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  connected_.erase(connection);
  session->connection = 0;
  for (auto& [id, asked] : session->asked) {
    if (!asked.is_open || !asked.is_sure) continue;
    asked.is_sure = false;
    --sure_count_;
    ++unsure_count_;
    may_form_unheard(asked);
    if (asked.operation != wire::operation<wire::Take>) continue;
    for (const std::string& key : asked.keys) {
      doubtful_.insert(key);
      present_.erase(key);
    }
  }
  session->ended = oracle_.running();
  next_look_ = std::min(next_look_, due(*session));
  if (session->is_blank && session->id != resuming_) put_by(*session);
}

/// It leaves its groups.
void Witness::said_goodbye(Connection connection) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  leaves_all(*session);
  forget(session->id);
}

void Witness::close(Asked& asked) {
  if (!asked.is_open) return;
  asked.is_open = false;
  --(asked.is_sure ? sure_count_ : unsure_count_);
}

/// Nobody hears what becomes of it.
void Witness::may_form_unheard(const Asked& asked) {
  if (!asked.is_open) return;
  const bool joins =
      asked.operation == wire::operation<wire::Join> && newest_.count(asked.group) != 0;
  if (!joins && asked.operation != wire::operation<wire::Regroup>) return;
  const auto epoch = epochs_.find(joins ? newest_.at(asked.group) : asked.epoch);
  if (epoch != epochs_.end()) epoch->second.may_be_over = true;
}

void Witness::forget(Session& session, std::uint64_t request) {
  const auto found = session.asked.find(request);
  if (found == session.asked.end()) return;
  may_form_unheard(found->second);
  if (!found->second.group.empty()) session.may_have_left.insert(found->second.group);  // a join
  close(found->second);
  session.asked.erase(found);
}

void Witness::forget(std::uint64_t id) {
  const auto found = sessions_.find(id);
  for (auto& [request, asked] : found->second.asked) close(asked);
  connected_.erase(found->second.connection);
  sessions_.erase(found);
}

Witness::Asked Witness::describe(const Session& session, const wire::Request& request) {
  Asked asked;
  asked.operation = wire::operation_of(request.body);
  std::visit(
      [&](const auto& body) {
        if constexpr (requires { body.epoch; }) asked.epoch = body.epoch;
        if constexpr (requires { body.round; }) asked.round = body.round;
      },
      request.body);
  if (const auto* join = std::get_if<wire::Join>(&request.body)) {
    asked.group = session.name_space + "/" + std::string(join->group);
    asked.rank = join->rank;
    asked.size = join->world_size;
  } else if (const auto* regroup = std::get_if<wire::Regroup>(&request.body)) {
    asked.size = regroup->new_size;
    asked.min_size = regroup->min_size;
  }
  const auto found = epochs_.find(asked.epoch);
  if (found == epochs_.end()) return asked;
  const Epoch& epoch = found->second;
  const bool is_of_stream = asked.operation == wire::operation<wire::Send> ||
                            asked.operation == wire::operation<wire::Receive> ||
                            asked.operation == wire::operation<wire::ExpireData>;
  asked.must_fail = (epoch.is_over && asked.operation != wire::operation<wire::Leave> &&
                     asked.operation != wire::operation<wire::Regroup>) ||
                    (epoch.is_broken && is_of_stream);
  if (const auto* part = std::get_if<wire::CollectiveCall>(&request.body)) {
    call(session, *part, asked);
  }
  return asked;
}

void Witness::call(const Session& session, const wire::CollectiveCall& request, Asked& asked) {
  const Epoch& epoch = epochs_[request.epoch];
  Round& round = rounds_[{request.epoch, request.round}];
  if (round.callers.empty() && (epoch.is_broken || epoch.has_leavers)) asked.must_fail = true;
  if (round.callers.empty()) {
    round.is_rooted = request.collective == wire::Collective::broadcast ||
                      request.collective == wire::Collective::scatter;
  }
  const bool is_known =
      std::find(round.callers.begin(), round.callers.end(), session.id) != round.callers.end();
  if (!is_known) round.callers.push_back(session.id);
}

void Witness::asked(Connection connection, const wire::Request& request) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  session->is_blank = false;
  acknowledged(connection, request.acknowledged);
  hand_ = &request;
  hand_session_ = session->id;
  const auto [place, is_new] = session->asked.try_emplace(request.id);
  Asked& asked = place->second;
  if (is_new) asked = describe(*session, request);
  if (is_new) asked.had_right = has_right(*session, asked.operation);
  asked.is_owed = true;
  asked.is_repeated = !is_new;
  const bool is_begun = is_new || (!asked.is_open && may_differ(asked.operation));
  if (!is_begun && (!asked.is_open || asked.is_sure)) return;
  if (!is_begun) --unsure_count_;
  ++sure_count_;
  asked.is_open = asked.is_sure = true;
  if (asked.operation == wire::operation<wire::Join>) touched_groups_.insert(asked.group);
  if (asked.operation == wire::operation<wire::Regroup>)
    touched_groups_.insert(epochs_[asked.epoch].group);
  if (!is_begun) return;
  asked.due = oracle_.now() + oracle_.longer(request.timeout) + late_max;
  fresh_ = Deadline{asked.due, session->id, request.id};
}

/// What waits, since it was repeated while its answer was under way, waits on.
void Witness::acknowledged(Connection connection, const std::vector<std::uint64_t>& ids) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  for (const std::uint64_t id : ids) {
    const auto found = session->asked.find(id);
    if (found != session->asked.end() && !found->second.is_open) session->asked.erase(found);
  }
}

void Witness::abandoned(Connection connection, const std::vector<std::uint64_t>& ids) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  for (const std::uint64_t id : ids) forget(*session, id);
}

void Witness::answered(const core::SendReply& reply) {
  Session* const session = session_on(reply.connection);
  if (session == nullptr) return;  // it was closed
  const auto found = session->asked.find(reply.request_id);
  if (found == session->asked.end()) return problem("an answer to what nobody asks");
  Asked& asked = found->second;
  if (!asked.is_owed) return problem("one request is answered twice");
  asked.is_owed = false;
  close(asked);
  if (asked.must_fail && reply.code == 0) {
    return problem(std::string(wire::name_of(asked.operation)) + " in epoch " +
                   std::to_string(asked.epoch) + ", which was over, is done");
  }
  const bool is_first = asked.answer == 0;
  check_right(*session, asked, reply.code);
  // Refused, as anything may be beyond the reserve, it is no leave.
  if (asked.operation == wire::operation<wire::Leave> && reply.code == 0) {
    leaves(session->id, asked.epoch);
    // It leaves the next epoch with it, if it has no other handle.
    const auto epoch = epochs_.find(asked.epoch);
    if (epoch != epochs_.end()) session->may_have_left.insert(epoch->second.group);
  }
  if (!asked.group.empty() && reply.code != 0) session->may_have_left.insert(asked.group);
  check_repetition(asked, reply);
  if (is_first) note_answer(*session, asked, reply.request_id, reply.code);
  if (is_first && reply.code != 0) check_error(*session, asked, reply);
  const bool forms = asked.operation == wire::operation<wire::Join> ||
                     asked.operation == wire::operation<wire::Regroup>;
  if (forms && reply.code == 0) check_formed(*session, asked, reply);
  if (asked.operation == wire::operation<wire::CollectiveCall>)
    check_round(*session, asked, reply.code);
  const bool is_forgotten = may_differ(asked.operation) && is_refusal(reply.code);
  if (!keeps_answer(asked.operation) || is_forgotten) session->asked.erase(found);
}

/// R7: answered the same. A request that was turned away is never carried out later: its repetition
/// is refused, too.
void Witness::check_repetition(Asked& asked, const core::SendReply& reply) {
  if (!keeps_answer(asked.operation) || may_differ(asked.operation)) return;
  std::uint64_t hash = std::hash<std::string_view>()(reply.head) * 31 + reply.code + 1;
  hash ^= std::hash<std::string_view>()(reply.value) * 13;
  if (reply.tail != nullptr) hash ^= std::hash<std::string_view>()(reply.tail->view()) * 17;
  if (asked.answer == 0) {
    const bool was_denied = reply.code == static_cast<std::uint16_t>(ErrorCode::permission_denied);
    // A denial is kept, unless memory is short as it comes. Want of room never is.
    const bool is_kept = was_denied && (asked.had_right || !oracle_.terms().has_small_limits);
    asked.is_turned_away = is_refusal(reply.code) && !is_kept;
  }
  const bool is_refused_again = asked.is_turned_away && is_refusal(reply.code);
  if (asked.answer != 0 && asked.answer != hash && !is_refused_again) {
    problem(std::string(wire::name_of(asked.operation)) + " is repeated and answered otherwise");
  }
  asked.answer = hash;
}

/// R5: epochs rise, each rank has one holder.
void Witness::check_formed(const Session& session, const Asked& asked,
                           const core::SendReply& reply) {
  std::string body = reply.head;
  body += reply.value;
  if (reply.tail != nullptr) body += reply.tail->view();
  const auto formed = body_of<wire::FormedReply>(body);
  const auto before = epochs_.find(asked.epoch);
  const std::string& group = before == epochs_.end() ? asked.group : before->second.group;
  const auto [place, is_new] = epochs_.try_emplace(formed.epoch);
  Epoch& epoch = place->second;
  const std::string name = "epoch " + std::to_string(formed.epoch);
  if (is_new) {
    epoch.group = group;
    epoch.size = formed.world_size;
    std::uint64_t& newest = newest_[group];
    if (newest > formed.epoch && !asked.is_repeated)
      problem(name + " is told of after a later one");
    if (newest < formed.epoch) {
      if (newest != 0) epochs_[newest].is_over = true;
      newest = formed.epoch;
    } else {
      epoch.is_over = true;
    }
  }
  if (epoch.group != group) problem(name + " is told of in another group");
  if (epoch.size != formed.world_size) problem(name + " has two sizes");
  const auto [holder, is_first] = epoch.sessions.emplace(formed.rank, session.id);
  if (!is_first && holder->second != session.id) problem(name + ": a rank has two holders");
  for (const auto& [rank, other] : epoch.sessions) {
    if (other == session.id && rank != formed.rank) problem(name + ": a session has two ranks");
  }
}

/// R3: a round is over once, and only when all have come who have to.
void Witness::check_round(const Session& session, const Asked& asked, std::uint16_t code) {
  Round& round = rounds_[{asked.epoch, asked.round}];
  if (is_turned_away(code)) std::erase(round.callers, session.id);
  if (!is_outcome(code)) return;
  const std::string name =
      "round " + std::to_string(asked.round) + " of epoch " + std::to_string(asked.epoch);
  if (!round.outcome) round.outcome = code;
  if (*round.outcome != code) problem(name + " has two outcomes");
  const Epoch& epoch = epochs_[asked.epoch];
  if (code == 0 && !round.is_rooted && round.callers.size() < epoch.size) {
    problem(name + " is done before all have called it");
  }
}

void Witness::told(const core::SendEvent& event) {
  const auto decoded = wire::decode_event(static_cast<std::uint16_t>(event.kind), *event.body);
  if (!decoded) return problem("an event that cannot be read");
  const Session* const session = session_on(event.connection);
  if (session == nullptr) return;
  if (event.kind == wire::EventKind::session_ended) return is_over(session->id);
  if (event.kind == wire::EventKind::interrupted) return;  // the epoch goes on
  const auto found = epochs_.find(decoded->epoch);
  if (found == epochs_.end()) return;
  Epoch& epoch = found->second;
  if (event.kind == wire::EventKind::epoch_broken) {
    epoch.is_broken = true;
    epoch.told_of_loss.insert(session->id);
  }
  if (event.kind == wire::EventKind::rank_left) epoch.has_leavers = true;
  if (decoded->error.code == ErrorCode::fenced) epoch.is_over = true;
  if (epoch.is_over) return;
  if (decoded->error.code == ErrorCode::rank_lost) check_all_lost_are_named(epoch, decoded->error);
  for (const RankRange range : decoded->error.rank_ranges) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      const auto gone = static_cast<std::uint32_t>(rank);
      epoch.told[session->id].insert(gone);
      if (event.kind == wire::EventKind::rank_left) epoch.left.insert(gone);
      is_gone(decoded->epoch, gone);
    }
  }
}

Witness::Asked* Witness::waiting(const Place& place) {
  const auto session = sessions_.find(place.session);
  if (session == sessions_.end()) return nullptr;
  const auto found = session->second.asked.find(place.request);
  if (found == session->second.asked.end()) return nullptr;
  return found->second.is_open && found->second.is_sure ? &found->second : nullptr;
}

void Witness::check(const core::Counts& counts, const core::Counts& of_guests) {
  if (fresh_) {
    if (Asked* const asked = waiting({fresh_->session, fresh_->request})) {
      deadlines_.push(*fresh_);
      begin_to_wait(sessions_.at(fresh_->session), *asked);
    }
    fresh_.reset();
  }
  session_count_ = counts.sessions - of_guests.sessions;
  check_losses();
  check_writes();
  for (const std::string& group : std::exchange(touched_groups_, {})) check_forming(group);
  hand_ = nullptr;
  resuming_ = 0;
  check_counts(counts, of_guests);
  check_limits(counts);
}

/// R8: the server holds as much as follows from what it was asked and has said.
void Witness::check_counts(core::Counts counts, const core::Counts& of_guests) {
  counts.connections -= of_guests.connections;
  counts.sessions -= of_guests.sessions;
  counts.waits -= of_guests.waits;
  if (counts.connections != connected_.size()) problem("another number of connections");
  if (counts.sessions < connected_.size() || counts.sessions > sessions_.size()) {
    problem("another number of sessions");
  }
  if (counts.sessions == connected_.size() && sessions_.size() > connected_.size()) {
    for (auto each = sessions_.begin(); each != sessions_.end();) {
      const auto here = each++;
      if (here->second.connection == 0) is_over(here->first);  // it was lost meanwhile
    }
  }
  if (counts.waits < sure_count_) problem("a request neither waits nor is answered");
  if (counts.waits > sure_count_ + unsure_count_) problem("more requests wait than were asked");
  const bool holds_anything = counts.sessions + counts.keys + counts.queues + counts.objects +
                                  counts.groups + counts.epochs + counts.cached_results +
                                  counts.waits + of_guests.sessions !=
                              0;
  // Events to sessions that have just ended are charged until the next input.
  const bool held_nothing = std::exchange(holds_nothing_, !holds_anything);
  if (held_nothing && !holds_anything && counts.memory_bytes != 0) {
    problem("bytes are charged for nothing");
  }
  if (counts.epochs == 0 && counts.rounds + counts.streams + counts.objects != 0) {
    problem("rounds, streams or objects of no epoch");
  }
}

/// R8: named limits hold at every moment.
void Witness::check_limits(const core::Counts& counts) {
  const std::uint64_t parked_max = options_.limits.parked_waits_max;
  const std::uint64_t kept_max = options_.limits.cached_results_max + parked_max;
  const auto check = [&](const char* what, std::uint64_t count, std::uint64_t most) {
    if (count > most) problem("above its limit: " + std::to_string(count) + " " + what);
  };
  check("requests wait", counts.waits, counts.sessions * parked_max);
  check("answers are kept", counts.cached_results, counts.sessions * kept_max);
  check("rounds are open", counts.rounds, counts.epochs * (2ull * options_.open_rounds_max + 1));
  check("bytes are charged", counts.memory_bytes,
        options_.memory_bytes_max * 9 / 8 + counts.sessions * bytes_allowed);
}

/// R1, as the server sees it.
void Witness::check_deadlines() {
  if (oracle_.running() >= next_look_) check_lives();
  if (!tellings_.empty() && tellings_.front().when <= oracle_.now()) check_tellings();
  while (!deadlines_.empty() && deadlines_.top().when < oracle_.now()) {
    const Deadline late = deadlines_.top();
    deadlines_.pop();
    const auto session = sessions_.find(late.session);
    if (session == sessions_.end()) continue;
    const auto found = session->second.asked.find(late.request);
    if (found == session->second.asked.end() || !found->second.is_open) continue;
    if (found->second.due > oracle_.now()) continue;  // it was asked anew
    if (!found->second.is_sure || !oracle_.server_is_calm(late.when - late_max, oracle_.now())) {
      deadlines_.push({oracle_.now() + late_max, late.session, late.request});
      continue;
    }
    return problem(std::string(wire::name_of(found->second.operation)) +
                   " waits past its deadline");
  }
}

}  // namespace muster::sim
