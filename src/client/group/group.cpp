#include "client/group/group.h"

#include <new>
#include <utility>

#include "client/failure.h"

namespace muster::client {

Result<std::shared_ptr<Group>> Group::create(std::shared_ptr<Link> link, std::string name,
                                             const GroupOptions& options,
                                             const wire::FormedReply& formed) {
  std::shared_ptr<Group> group(new Group(std::move(link), std::move(name), options, formed));
  if (group->link_->watchers().add(group->epoch(), group)) return group;
  group->is_gone_ = true;  // it must not leave in the other's name
  return failure(
      ErrorCode::busy,
      "this store has a handle of this group already; end that one first, or use another store");
}

Group::Group(std::shared_ptr<Link> link, std::string name, const GroupOptions& options,
             const wire::FormedReply& formed)
    : link_(std::move(link)),
      name_(std::make_shared<const std::string>(std::move(name))),
      options_(options),
      formed_(formed),
      numbers_(formed),
      losses_({*name_, formed.epoch, world_size(), link_->address()}, options, link_->handlers()) {}

Group::~Group() {
  leave_unasked();
  link_->watchers().remove(epoch());
}

/// A destructor's part: if memory is out, the whole session ends, and the group's with it.
void Group::leave_unasked() {
  try {
    if (is_gone_.exchange(true)) return;
    end(failure(ErrorCode::closed, "the group's handle is gone"));
    mark_->close();  // the server's answer to the leaving may come before the calls are cancelled
    Ticket ticket;
    ticket.is_lasting = true;
    link_->submit(wire::Leave{epoch()}, {}, std::move(ticket));
    link_->cancel_closed(*mark_);
  } catch (const std::bad_alloc&) {
    link_->break_down();
  }
}

void Group::end(Error why) {
  is_gone_ = true;
  numbers_.with_state([&why](protocol::GroupState& state) { state.end(why); });
  losses_.end(std::move(why));
}

/// On the I/O thread.
void Group::on_event(const wire::Event& event) {
  if (event.kind == wire::EventKind::session_ended) return end(event.error);
  if (is_gone_) return;
  if (event.kind == wire::EventKind::interrupted) return losses_.interrupted(event.error);
  losses_.lost(event.error);
}

}  // namespace muster::client
