#include "body.h"
#include "group_work.h"

// What a member does beside rounds and objects: it looks at the others, lets its own objects
// expire, and calls what belongs to an older handle.

namespace muster::sim {
namespace {

using namespace std::chrono_literals;
using protocol::Fate;

}  // namespace

/// Of its own epoch it is told who is gone.
void GroupWork::told(const wire::Event& event) {
  if (state_ && event.epoch == state_->formed().epoch) note_gone(event.error);
}

void GroupWork::note_gone(const Error& error) {
  if (error.code != ErrorCode::rank_lost && error.code != ErrorCode::rank_left) return;
  for (const RankReport& report : error.ranks)
    gone_.insert(static_cast<std::uint32_t>(report.rank));
}

void GroupWork::look_at_members() {
  const Instant asked = town().scheduler.now();
  const std::uint64_t epoch = state_->formed().epoch;
  ask("members", wire::Members{epoch}, 5s, 0,
      [this, asked, gone = gone_, size = state_->formed().world_size](const Reply& reply, Fate) {
        if (!reply) return;
        std::uint32_t next = 0;
        for (const auto& entry : body_of<wire::MembersReply>(*reply).members) {
          town().oracle.check_entry(process_.number(), id_, entry, asked);
          if (entry.info != "of " + std::to_string(entry.process.pid)) {
            town().oracle.problem("a member has another one's info");
          }
          if (entry.state == wire::MemberState::candidate) continue;
          if (entry.rank != next++) town().oracle.problem("members are not told of by rank");
          const bool is_gone =
              entry.state == wire::MemberState::lost || entry.state == wire::MemberState::left;
          if (gone.count(entry.rank) != 0 && !is_gone) {
            town().oracle.problem("rank " + std::to_string(entry.rank) +
                                  " was told to be gone and is told of as a member");
          }
        }
        if (next != size) town().oracle.problem("not all members are told of");
      });
}

void GroupWork::expire() {
  const Duration older_than = random().between(Duration(0), 3s);
  const auto number = model().expire_begins(place(), older_than);
  ask("expire_data", wire::ExpireData{state_->formed().epoch, older_than}, patience(), 0,
      [this, number, at = place()](const Reply& reply, Fate) {
        if (reply) model().expire_ended(at, number);
      });
}

/// As an old handle would, of which nobody has told it that its epoch is over.
void GroupWork::haunt() {
  if (!before_ || before_->epoch.first != incarnation_) return;
  const auto must_fail = [this](const Reply& reply, Fate) {
    if (reply) town().oracle.problem("an old epoch's call was accepted");
  };
  const std::uint64_t epoch = before_->epoch.second;
  ask("old send", wire::Send{epoch, 0, 7, 0, 1, "old"}, 5s, 0, must_fail);
  ask("old receive", wire::Receive{epoch, 0, 0, 0, 1}, 5s, 0, must_fail);
  ask("old members", wire::Members{epoch}, 5s, 0, must_fail);
}

/// What a regroup is told that somebody gives up for all.
void GroupWork::cancel_regroup_perhaps(std::uint64_t attempt, std::uint64_t call) {
  if (!random().one_in(4)) return;
  process_.later(random().between(Duration(0), 500ms), [this, attempt, call, life = life_] {
    if (life != life_ || !town().oracle.is_pending(call)) return;
    model().cancel_regroup_begins(place().epoch);
    ask("cancel regroup", wire::CancelRegroup{place().epoch.second, attempt}, 5s, 0,
        [](const Reply&, Fate) {});
  });
}

}  // namespace muster::sim
