#include "client/group/group.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/rank_ranges.h"
#include "client/failure.h"

namespace muster::client {

Result<std::shared_ptr<Group>> Group::create(std::shared_ptr<Link> link, std::string name,
                                             const GroupOptions& options,
                                             const wire::FormedReply& formed) {
  std::shared_ptr<Group> group(new Group(std::move(link), std::move(name), options, formed));
  if (group->link_->watchers().add(group->epoch(), group)) return group;
  group->is_gone_ = true;  // it must not leave in the other's name
  return failure(ErrorCode::busy, "this store has a handle of this group already");
}

Group::Group(std::shared_ptr<Link> link, std::string name, const GroupOptions& options,
             const wire::FormedReply& formed)
    : link_(std::move(link)),
      name_(std::make_shared<const std::string>(std::move(name))),
      options_(options),
      formed_(formed),
      state_(formed) {}

Group::~Group() {
  leave_unasked();
  link_->watchers().remove(epoch());
}

GroupCounters Group::counters() {
  const std::lock_guard lock(mutex_);
  return {state_.rounds(), state_.objects_sent(), state_.objects_received()};
}

/// A destructor's part: if memory is out, the whole session ends, and the group's with it.
void Group::leave_unasked() {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_gone_, true)) return;
      state_.end(failure(ErrorCode::closed, "the group's handle is gone"));
    }
    watches_.tell(named(failure(ErrorCode::closed, "the group's handle is gone")));
    mark_->close();  // the server's answer to the leaving may come before the calls are cancelled
    Ticket ticket;
    ticket.serial = link_->next_serial();
    link_->submit(wire::Leave{epoch()}, link_->options().timeout, std::move(ticket));
    link_->cancel_closed(*mark_);
  } catch (const std::bad_alloc&) {
    link_->break_down();
  }
}

void Group::end(Error why) {
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    state_.end(why);
  }
  watches_.tell(named(std::move(why)));
}

GroupWatch Group::watch(std::function<void(const Error& error)> handler) {
  return watches_.add(std::move(handler));
}

/// With what those who are told cannot know otherwise.
Error Group::named(Error error) const {
  error.group = name();
  error.epoch = epoch();
  if (error.where.empty()) error.where = link_->address();
  return error;
}

/// `error` without the ranks that were told of before.
Error Group::first_told(Error error) {
  told_ranks_.resize(static_cast<std::size_t>(world_size()));
  std::vector<RankRange> ranges;
  std::vector<bool> fresh(told_ranks_.size());
  for (const RankRange range : error.rank_ranges) {
    const int last = std::min(range.last, world_size() - 1);
    for (int rank = std::max(range.first, 0); rank <= last; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (told_ranks_[index]) continue;
      told_ranks_[index] = true;
      fresh[index] = true;
      base::add_to(ranges, rank);
    }
  }
  error.rank_ranges = std::move(ranges);
  const auto was_told = [&](const RankReport& report) {
    const auto index = static_cast<std::size_t>(report.rank);
    return report.rank < 0 || index >= fresh.size() || !fresh[index];
  };
  error.ranks.erase(std::remove_if(error.ranks.begin(), error.ranks.end(), was_told),
                    error.ranks.end());
  return error;
}

/// On the I/O thread.
void Group::on_event(const wire::Event& event) {
  if (event.kind == wire::EventKind::session_ended) return end(event.error);
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return;
  }
  Error told = first_told(event.error);
  if (told.rank_ranges.empty()) return;
  told = named(std::move(told));
  watches_.tell(told);
  if (!options_.on_loss) return;
  link_->handlers().dispatch(
      "on_loss", [on_loss = options_.on_loss, told = std::move(told)] { on_loss(told); });
}

}  // namespace muster::client
