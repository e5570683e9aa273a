#include "group_model.h"

#include "oracle.h"

namespace muster::sim {

void GroupModel::problem(const Number& epoch, const std::string& what) {
  oracle_.problem("epoch " + std::to_string(epoch.second) + ": " + what);
}

void GroupModel::problem(const Place& place, std::uint64_t round, const std::string& what) {
  oracle_.problem("epoch " + std::to_string(place.epoch.second) + " round " +
                  std::to_string(round) + " rank " + std::to_string(place.rank) + ": " + what);
}

void GroupModel::formed(std::uint64_t client, const std::string& group, std::uint64_t incarnation,
                        const wire::FormedReply& reply, const std::optional<Place>& before,
                        bool keeps_ranks) {
  const Number number{incarnation, reply.epoch};
  Number& newest = newest_[{group, client}];
  if (newest > number) problem(number, "epochs run backwards");
  newest = number;
  joiners_.erase({group, client});
  Epoch& epoch = epochs_[number];
  if (reply.rank >= reply.world_size) problem(number, "a rank beyond the world");
  if (epoch.size != 0 && epoch.size != reply.world_size) problem(number, "its size differs");
  epoch.size = reply.world_size;
  for (const auto& [rank, other] : epoch.clients) {
    if (other == client && rank != reply.rank) problem(number, "one process has two ranks");
  }
  const auto [holder, is_new] = epoch.clients.emplace(reply.rank, client);
  if (!is_new && holder->second != client) {
    problem(number, "two processes are rank " + std::to_string(reply.rank));
  }
  if (!before || before->epoch == number) return;
  if (before->epoch.first != incarnation) return;
  if (keeps_ranks && before->rank != reply.rank) problem(number, "a survivor has another rank");
  epoch.before[reply.rank] = *before;
  const Place* last = nullptr;
  for (const auto& entry : epoch.before) {
    const Place& each = entry.second;
    if (last != nullptr && last->epoch == each.epoch && last->rank >= each.rank) {
      problem(number, "survivors are out of their old order");
    }
    last = &each;
  }
}

void GroupModel::join_begins(const std::string& group, std::uint64_t client, std::uint32_t rank) {
  asked_for_[{group, rank}].insert(client);
  askers_.insert({group, client});
  if (joiners_.insert({group, client}).second) return;
  has_second_joins_ = true;
  second_join_begins(group, client);
}

bool GroupModel::may_have_size(const Number& epoch, std::uint64_t size) const {
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() || found->second.size == 0 || found->second.size == size;
}

bool GroupModel::has_ranks_beyond(const Number& epoch, std::uint64_t size) const {
  const auto found = epochs_.find(epoch);
  return found != epochs_.end() && found->second.size > size;
}

void GroupModel::regroup_begins(const Number& epoch) {
  epochs_[epoch].may_be_over = epochs_[epoch].has_regroups = true;
}

void GroupModel::leave_begins(const std::string& group, const Number& epoch, std::uint64_t client) {
  epochs_[epoch].may_be_over = true;
  leavers_.insert({group, client});
}

void GroupModel::left(const Number& epoch) {
  if (!epochs_[epoch].left) epochs_[epoch].left = oracle_.now();
}

bool GroupModel::is_left(const Number& number, std::uint64_t round, Instant when) const {
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.left) return false;
  return *found->second.left < when && !may_be_done(number, round);
}

std::uint64_t GroupModel::unfinished_rounds_count() const {
  std::uint64_t count = 0;
  for (const auto& [number, epoch] : epochs_) {
    for (const auto& [round, known] : epoch.rounds) {
      if (known.told.size() < epoch.size) ++count;
    }
    for (const auto& [rank, times] : epoch.interruptions) count += times;
  }
  return count;
}

void GroupModel::deviates(const Number& epoch) { epochs_[epoch].has_deviation = true; }

bool GroupModel::somebody_asked_for(const std::string& group, std::uint32_t rank,
                                    std::uint64_t not_this) const {
  const auto found = asked_for_.find({group, rank});
  if (found == asked_for_.end()) return false;
  return found->second.size() > found->second.count(not_this);
}

bool GroupModel::may_be_over(const Number& epoch) const {
  const auto found = epochs_.find(epoch);
  return has_second_joins_ || (found != epochs_.end() && found->second.may_be_over);
}

bool GroupModel::may_mismatch(const Number& epoch) const {
  const auto found = epochs_.find(epoch);
  return found != epochs_.end() && (found->second.has_regroups || found->second.has_deviation);
}

void GroupModel::round_begins(const Place& place, std::uint64_t client, std::uint64_t round,
                              const RoundCall& call, Duration timeout) {
  Called& called = epochs_[place.epoch].rounds[round].called[place.rank];
  if (called.client != 0) called.older_values.push_back(called.call.values);
  called.client = client;
  called.call = call;
  called.begun = oracle_.now();
  called.timeout = timeout;
}

void GroupModel::round_refused(const Place& place, std::uint64_t round) {
  epochs_[place.epoch].rounds[round].called[place.rank].timeout = base::timeout_max;
}

bool GroupModel::may_be_done(const Number& epoch, std::uint64_t number) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  const auto known = found->second.rounds.find(number);
  return known != found->second.rounds.end() && known->second.called.size() == found->second.size;
}

bool GroupModel::is_source(const Number& epoch, std::uint64_t number, std::uint64_t client) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  const auto known = found->second.rounds.find(number);
  if (known == found->second.rounds.end()) return false;
  for (const auto& [rank, called] : known->second.called) {
    const bool from_one = called.call.collective == wire::Collective::broadcast ||
                          called.call.collective == wire::Collective::scatter;
    if (called.client == client) return from_one && called.call.root == rank;
  }
  return false;
}

bool GroupModel::may_have_called(const Number& number, std::uint64_t wanted, std::uint32_t rank,
                                 const std::string& called) const {
  const auto epoch = epochs_.find(number);
  if (epoch == epochs_.end()) return true;
  if (called == "regroup") return epoch->second.has_regroups;
  const auto round = epoch->second.rounds.find(wanted);
  if (round == epoch->second.rounds.end()) return false;
  const auto own = round->second.called.find(rank);
  return own != round->second.called.end() && called == wire::name_of(own->second.call.collective);
}

void GroupModel::cancel_begins(const Number& epoch, std::uint64_t round) {
  epochs_[epoch].rounds[round].may_be_cancelled = true;
}

void GroupModel::cancel_regroup_begins(const Number& epoch) { epochs_[epoch].has_cancels = true; }

void GroupModel::interruption_begins(const Place& place) {
  ++epochs_[place.epoch].interruptions[place.rank];
}

bool GroupModel::may_be_interrupted(const Number& number, const Error& error) const {
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || error.ranks.empty()) return false;
  const auto& interruptions = found->second.interruptions;
  return std::all_of(error.ranks.begin(), error.ranks.end(), [&](const RankReport& report) {
    return interruptions.count(static_cast<std::uint32_t>(report.rank)) != 0;
  });
}

bool GroupModel::may_be_cancelled(const Number& epoch, std::uint64_t round) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  if (round == 0) return found->second.has_cancels;
  const auto known = found->second.rounds.find(round);
  return known != found->second.rounds.end() && known->second.may_be_cancelled;
}

std::map<std::uint32_t, std::uint64_t> GroupModel::members(const Number& epoch) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return {};
  return found->second.clients;
}

}  // namespace muster::sim
