#include "runtime/rank_group.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <thread>

#include "base/digest.h"
#include "runtime/layout.h"
#include "runtime/tensor/state.h"

namespace muster::runtime {

std::string subgroup_name(std::string_view world, const std::vector<int>& world_ranks, int number,
                          std::string_view dimension, std::string_view name) {
  constexpr std::size_t listed_bytes_max = 256;
  std::string ranks;
  for (const int rank : world_ranks) ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
  if (ranks.size() > listed_bytes_max) {
    ranks = std::to_string(world_ranks.size()) + " ranks " + std::to_string(base::digest_of(ranks));
  }
  if (number != 1) ranks += "#" + std::to_string(number);
  std::string text = std::string(world) + "/" + ranks;
  if (!dimension.empty()) text += "@" + std::string(dimension);
  return name.empty() ? text : text + "/" + std::string(name);
}

void introduce(Error& error, const RankGroup::Impl* group) {
  for (RankReport& report : error.ranks) {
    if (report.joined || report.rank < 0) continue;
    report.joined = true;
    if (group == nullptr) continue;
    const std::vector<JobPlace>& places = group->places();
    const auto rank = static_cast<std::size_t>(report.rank);
    if (rank < places.size()) report.process = places[rank].process;
  }
}

void LiveGroups::add(RankGroup::Impl& group) {
  const std::lock_guard lock(mutex_);
  groups_.insert(&group);
}

void LiveGroups::remove(RankGroup::Impl& group) {
  const std::lock_guard lock(mutex_);
  groups_.erase(&group);
}

void LiveGroups::abort_all(std::string_view reason, Duration wait) {
  /// Shared with the handlers, which may run after this has given up.
  struct Answers {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t due = 0;
  };
  const auto answers = std::make_shared<Answers>();
  const std::lock_guard lock(mutex_);
  answers->due = groups_.size() + 1;
  for (RankGroup::Impl* const group : groups_) {
    group->group().interrupt_async(reason, wait, [answers](const Result<void>&) {
      const std::lock_guard answered(answers->mutex);
      --answers->due;
      answers->changed.notify_all();
    });
  }
  // NCCL's abort may hang.
  std::thread([answers, groups = groups_] {
    for (RankGroup::Impl* const group : groups) group->abort_communicators();
    const std::lock_guard aborted(answers->mutex);
    --answers->due;
    answers->changed.notify_all();
  }).detach();
  std::unique_lock waiting(answers->mutex);
  answers->changed.wait_for(waiting, wait, [&] { return answers->due == 0; });
}

}  // namespace muster::runtime

MUSTER_BEGIN_NAMESPACE

RankGroup::Impl::Impl(StatelessProcessGroup group, runtime::Members members,
                      std::shared_ptr<runtime::LiveGroups> live)
    : group_(std::move(group)),
      members_(std::move(members)),
      tensors_(std::make_unique<runtime::TensorState>()),
      live_(std::move(live)) {
  live_->add(*this);
}

RankGroup::Impl::~Impl() { live_->remove(*this); }

Communicator* RankGroup::Impl::communicator(std::string_view device) {
  const auto found = communicators_.find(device);
  return found == communicators_.end() ? nullptr : &found->second;
}

Result<void> RankGroup::Impl::make_communicators(const runtime::CommunicatorKinds& kinds,
                                                 const std::vector<CommunicatorMaker>& makers,
                                                 int device, Duration timeout) {
  for (const auto& kind : kinds) {  // for its device
    const auto maker = std::find_if(makers.begin(), makers.end(), [&](const auto& candidate) {
      return candidate.kind == kind.second;
    });
    auto made = maker->make(group_, kind.first == "cuda" ? device : 0, timeout);
    if (!made) return std::move(made).error();
    communicators_.emplace(kind.first, *std::move(made));
  }
  return {};
}

Result<void> RankGroup::Impl::close_communicators(Duration timeout) {
  Result<void> closed;
  for (auto& [device, communicator] : communicators_) {
    const auto ended = communicator.error();
    if (ended && ended->code == ErrorCode::closed) continue;  // by its program
    if (auto result = communicator.close(timeout); !result && closed) closed = std::move(result);
  }
  communicators_.clear();
  return closed;
}

void RankGroup::Impl::abort_communicators() {
  std::vector<Communicator*> all;
  for (auto& [device, communicator] : communicators_) all.push_back(&communicator);
  Communicator::abort_all(all);
}

std::vector<int> RankGroup::Impl::leaders_on_nodes() const {
  std::map<int, int> leaders;  // of each node
  const auto local_rank = [this](int rank) {
    return members_.places[static_cast<std::size_t>(rank)].local_rank;
  };
  const int count = static_cast<int>(members_.places.size());
  for (int rank = 0; rank < count; ++rank) {
    const int node = members_.places[static_cast<std::size_t>(rank)].node_rank;
    const auto [leader, is_first] = leaders.emplace(node, rank);
    if (!is_first && local_rank(rank) < local_rank(leader->second)) leader->second = rank;
  }
  std::vector<int> of_ranks;
  for (const JobPlace& place : members_.places) of_ranks.push_back(leaders.at(place.node_rank));
  return of_ranks;
}

std::vector<int> RankGroup::Impl::leaders_on_file_systems() const {
  return members_.share_files ? std::vector<int>(members_.places.size(), 0) : leaders_on_nodes();
}

Result<RankGroup> RankGroup::of(StatelessProcessGroup group, const Environment& environment,
                                Duration timeout) {
  auto members = runtime::exchange_places(group, environment, timeout);
  if (!members) return std::move(members).error();
  return RankGroup(std::make_unique<Impl>(std::move(group), *std::move(members),
                                          std::make_shared<runtime::LiveGroups>()));
}

RankGroup::RankGroup() = default;
RankGroup::RankGroup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RankGroup::~RankGroup() = default;
RankGroup::RankGroup(RankGroup&&) noexcept = default;
RankGroup& RankGroup::operator=(RankGroup&&) noexcept = default;

StatelessProcessGroup* RankGroup::group() const { return impl_ ? &impl_->group() : nullptr; }

const std::vector<int>& RankGroup::world_ranks() const {
  static const std::vector<int> none;
  return impl_ ? impl_->world_ranks() : none;
}

const std::vector<JobPlace>& RankGroup::places() const {
  static const std::vector<JobPlace> none;
  return impl_ ? impl_->places() : none;
}

std::optional<int> RankGroup::rank_of(int world_rank) const {
  const std::vector<int>& all = world_ranks();
  const auto found = std::find(all.begin(), all.end(), world_rank);
  if (found == all.end()) return {};
  return static_cast<int>(found - all.begin());
}

Communicator* RankGroup::communicator(std::string_view device) const {
  return impl_ ? impl_->communicator(device) : nullptr;
}

MUSTER_END_NAMESPACE
