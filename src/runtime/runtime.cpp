#include "muster/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/failure.h"
#include "muster/log.h"
#include "runtime/cut_timeout.h"
#include "runtime/layout.h"
#include "runtime/meeting.h"
#include "runtime/rank_group.h"

// init: where to meet (environment, options) -> meet: the world group -> each tells where it is,
// all compute the same layout -> communicators -> barrier. A failure leaves nothing behind, and
// init may be called again.

MUSTER_BEGIN_NAMESPACE

using runtime::LiveGroups;
using runtime::MeetingPoint;

namespace {

using Clock = std::chrono::steady_clock;

Error about(std::string_view operation, Error error) {
  if (error.operation.empty()) error.operation = operation;
  if (error.decided_by.empty()) error.decided_by = "client";
  return error;
}

Error refused(std::string_view operation, ErrorCode code, std::string detail) {
  return about(operation, base::failure(code, std::move(detail)));
}

}  // namespace

class Runtime::Impl {
 public:
  explicit Impl(Environment environment) : environment_(std::move(environment)) {}

  const Environment& environment() const { return environment_; }
  const FormedGroup* formed() const { return formed_ ? &*formed_ : nullptr; }
  const std::vector<JobPlace>& places() const {
    static const std::vector<JobPlace> none;
    return formed_ ? world_.impl()->places() : none;
  }
  JobPlace place() const {
    return formed_ ? places()[static_cast<std::size_t>(formed_->rank)] : JobPlace();
  }
  RankGroup& world() { return world_; }
  Store* store() const { return formed_ ? &world_.group()->store() : nullptr; }

  Result<void> init(RuntimeOptions options);
  /// dimension  of the mesh that they are along; empty: of none
  Result<RankGroup> subgroup(std::vector<int> world_ranks, std::string_view dimension,
                             const SubgroupOptions& options);
  Result<void> shutdown(Duration timeout);
  void abort(std::string_view reason) { live_->abort_all(reason, std::chrono::milliseconds(1500)); }

 private:
  Result<void> check_makers(const runtime::CommunicatorKinds& kinds,
                            std::string_view operation) const;
  Result<void> form(RuntimeOptions& options, Clock::time_point deadline);
  void log_node(const RuntimeOptions& options) const;
  void leave();

  const Environment environment_;
  std::shared_ptr<LiveGroups> live_ = std::make_shared<LiveGroups>();
  std::optional<MeetingPoint> point_;  ///< of the init that has succeeded
  std::vector<CommunicatorMaker> makers_;
  std::optional<Store> store_;  ///< unless the group's own server is hosted
  RankGroup world_;
  std::optional<FormedGroup> formed_;
  std::map<std::string, int> formed_counts_;  ///< of each subgroup, by its name
};

Result<void> Runtime::Impl::init(RuntimeOptions options) {
  const runtime::SocketGuard unused(options.group.listening_socket);
  constexpr std::string_view operation = "Runtime::init";
  const auto deadline = Clock::now() + runtime::cut_to_a_year(options.group.timeout);
  auto point = runtime::meeting_point(environment_, options);
  if (!point) return about(operation, std::move(point).error());
  if (formed_) {
    const std::string difference = runtime::difference_of(*point_, *point);
    if (difference.empty()) return {};
    return refused(operation, ErrorCode::invalid_argument,
                   "the runtime was initialized with other options: " + difference);
  }
  makers_ = options.makers;
  if (auto checked = check_makers(point->kinds, operation); !checked) return checked;
  point_ = *std::move(point);
  auto formed = form(options, deadline);
  if (formed) return formed;
  leave();
  return about(operation, std::move(formed).error());
}

Result<void> Runtime::Impl::check_makers(const runtime::CommunicatorKinds& kinds,
                                         std::string_view operation) const {
  for (const auto& kind : kinds) {  // for its device
    const bool is_there = std::any_of(makers_.begin(), makers_.end(), [&](const auto& maker) {
      return maker.kind == kind.second && maker.make;
    });
    if (is_there) continue;
    return refused(operation, ErrorCode::invalid_argument,
                   "nobody makes communicators of kind '" + printable(kind.second) +
                       "': add its maker to RuntimeOptions::makers, such as gloo_maker() of "
                       "muster/runtime_gloo.h");
  }
  return {};
}

Result<void> Runtime::Impl::form(RuntimeOptions& options, Clock::time_point deadline) {
  const auto time_left = [&] {
    return std::max(std::chrono::duration_cast<Duration>(deadline - Clock::now()), Duration(1));
  };
  auto group = runtime::meet(*point_, options.group, store_);
  if (!group) return std::move(group).error();
  auto members = runtime::exchange_places(*group, environment_, time_left());
  if (!members) return std::move(members).error();
  auto world = std::make_unique<RankGroup::Impl>(*std::move(group), *std::move(members), live_);
  const std::vector<JobPlace>& places = world->places();
  const JobPlace& own = places[static_cast<std::size_t>(world->group().rank())];
  int node_count = 0;
  for (const JobPlace& place : places) node_count = std::max(node_count, place.node_rank + 1);

  auto made = world->make_communicators(point_->kinds, makers_,
                                        point_->device.value_or(own.local_rank), time_left());
  if (!made) return made;
  if (auto met = world->group().barrier(time_left()); !met) return std::move(met).error();
  formed_ = FormedGroup{world->group().rank(),
                        world->group().world_size(),
                        own.local_world_size,
                        own.local_rank,
                        node_count,
                        own.node_rank};
  world_ = RankGroup(std::move(world));
  log_node(options);
  return {};
}

/// One line for each node, by its first rank.
void Runtime::Impl::log_node(const RuntimeOptions& options) const {
  const JobPlace own = place();
  if (!options.group.store.logger || own.local_rank != 0) return;
  std::string ranks;
  for (const JobPlace& place : places()) {
    if (place.node_rank != own.node_rank) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(place.rank);
  }
  options.group.store.logger(
      LogLevel::info,
      printable("node " + std::to_string(own.node_rank) + " of " +
                std::to_string(*formed_->node_count) + " (" + environment_.host_name() +
                ") has ranks " + ranks + " of " + std::to_string(formed_->world_size)));
}

Result<RankGroup> Runtime::Impl::subgroup(std::vector<int> world_ranks, std::string_view dimension,
                                          const SubgroupOptions& options) {
  constexpr std::string_view operation = "Runtime::subgroup";
  if (!formed_) return refused(operation, ErrorCode::not_initialized, "call Runtime::init first");
  std::vector<int> sorted = world_ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return refused(operation, ErrorCode::invalid_argument,
                   "rank " + std::to_string(*twice) + " is there twice");
  }
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= formed_->world_size) {
    return refused(operation, ErrorCode::invalid_argument,
                   "its ranks are some of 0 to " + std::to_string(formed_->world_size - 1));
  }
  const auto own = std::find(world_ranks.begin(), world_ranks.end(), formed_->rank);
  if (own == world_ranks.end()) {
    return refused(operation, ErrorCode::invalid_argument,
                   "this is rank " + std::to_string(formed_->rank) +
                       ", which is not in it: only members call it");
  }
  auto kinds = runtime::communicator_kinds_of(options.communicators);
  if (!kinds) return about(operation, std::move(kinds).error());
  if (auto checked = check_makers(*kinds, operation); !checked) return std::move(checked).error();

  GroupOptions of_group;
  of_group.other_tenants = point_->other_tenants;
  of_group.data_expiration = point_->data_expiration;
  of_group.timeout = options.timeout == default_timeout ? point_->timeout : options.timeout;
  const auto name_of = [&](int number) {
    return runtime::subgroup_name(point_->group, world_ranks, number, dimension, options.name);
  };
  // Its members have formed it as often: the next one is another group, whoever has left the last.
  int& formed_count = formed_counts_[name_of(1)];
  auto group = StatelessProcessGroup::create(*store(), name_of(formed_count + 1),
                                             static_cast<int>(own - world_ranks.begin()),
                                             static_cast<int>(world_ranks.size()), of_group);
  if (!group) return std::move(group).error();
  ++formed_count;
  runtime::Members members;
  members.share_files = world_.impl()->members().share_files;
  for (const int rank : world_ranks)
    members.places.push_back(places()[static_cast<std::size_t>(rank)]);
  members.world_ranks = std::move(world_ranks);
  auto impl = std::make_unique<RankGroup::Impl>(*std::move(group), std::move(members), live_);
  auto made = impl->make_communicators(*kinds, makers_, point_->device.value_or(place().local_rank),
                                       of_group.timeout);
  if (!made) return std::move(made).error();
  return RankGroup(std::move(impl));
}

Result<void> Runtime::Impl::shutdown(Duration timeout) {
  if (!formed_) {
    return refused("Runtime::shutdown", ErrorCode::not_initialized,
                   "the runtime is not initialized, or is shut down already");
  }
  const auto deadline = Clock::now() + runtime::cut_to_a_year(timeout);
  const auto time_left = [&] {
    return std::max(std::chrono::duration_cast<Duration>(deadline - Clock::now()), Duration(1));
  };
  Result<void> result;
  RankGroup::Impl& world = *world_.impl();
  if (auto met = world.group().barrier(time_left()); !met) result = std::move(met).error();
  if (result && world.has_communicators()) {
    result = world.close_communicators(time_left());
    // A rank that leaves now would end what the others are closing.
    if (auto met = world.group().barrier(time_left()); !met && result)
      result = std::move(met).error();
  }
  if (auto closed = world.group().close(time_left()); !closed && result)
    result = std::move(closed).error();
  leave();
  return result;
}

void Runtime::Impl::leave() {
  formed_.reset();
  formed_counts_.clear();
  world_ = RankGroup();
  store_.reset();
  point_.reset();
}

Runtime::Runtime() : Runtime(Environment::of_process()) {}
Runtime::Runtime(Environment environment) : impl_(std::make_unique<Impl>(std::move(environment))) {}
Runtime::~Runtime() = default;

Result<void> Runtime::init(RuntimeOptions options) { return impl_->init(std::move(options)); }
bool Runtime::is_initialized() const { return impl_->formed() != nullptr; }
const Environment& Runtime::environment() const { return impl_->environment(); }
const FormedGroup* Runtime::formed() const { return impl_->formed(); }

Result<FoundNumber> Runtime::number(JobNumber number, EnvironmentRule rule) const {
  return impl_->environment().number(number, rule, impl_->formed());
}

int Runtime::rank() const { return impl_->place().rank; }
int Runtime::world_size() const { return formed() ? formed()->world_size : 1; }
int Runtime::local_rank() const { return impl_->place().local_rank; }
int Runtime::local_world_size() const { return impl_->place().local_world_size; }
int Runtime::node_rank() const { return impl_->place().node_rank; }
int Runtime::node_count() const { return formed() ? formed()->node_count.value_or(1) : 1; }
const std::vector<JobPlace>& Runtime::places() const { return impl_->places(); }
RankGroup& Runtime::world() { return impl_->world(); }
Store* Runtime::store() const { return impl_->store(); }

Result<RankGroup> Runtime::subgroup(Span<const int> world_ranks, const SubgroupOptions& options) {
  return impl_->subgroup({world_ranks.begin(), world_ranks.end()}, {}, options);
}

Result<RankGroup> Runtime::subgroup(const Mesh& mesh, std::string_view dimension,
                                    const SubgroupOptions& options) {
  auto ranks = mesh.ranks_along(dimension, rank());
  if (!ranks) return about("Runtime::subgroup", std::move(ranks).error());
  return impl_->subgroup(*std::move(ranks), dimension, options);
}

Result<void> Runtime::shutdown(Duration timeout) { return impl_->shutdown(timeout); }

void Runtime::abort(int code, std::string_view reason) noexcept {
  impl_->abort(reason);
  ::_exit(code);
}

MUSTER_END_NAMESPACE
