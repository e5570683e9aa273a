#include "core/session.h"

#include "core/failure.h"
#include "core/group.h"
#include "core/name_space.h"
#include "core/round.h"
#include "core/stream.h"
#include "core/table_state.h"
#include "core/waits.h"

// The one place that knows all kinds of waits, and so can destroy them, and tell of them.

namespace muster::core {
namespace {

constexpr std::size_t keys_told_of_max = 4;

struct Target {
  std::string operator()(std::monostate) const { return ""; }

  std::string operator()(const std::unique_ptr<KeyWait>& wait) const {
    const Instant now = wait->parked.received;  // what has expired since is as good as there
    std::string text;
    std::size_t count = 0;
    for (const WaitLink& link : wait->links) {
      if (link.entry == nullptr || link.entry->present_at(now)) continue;
      if (++count > keys_told_of_max) continue;
      text += (count == 1 ? "" : ", ") + quoted(link.entry->key());
    }
    if (count > keys_told_of_max) {
      text += " and " + std::to_string(count - keys_told_of_max) + " more";
    }
    return text;
  }

  std::string operator()(const std::unique_ptr<JoinWait>& wait) const {
    const Joiner& joiner = wait->joiner;
    return "group " + quoted(joiner.group->name()) + " rank " + std::to_string(joiner.rank) +
           " of " + std::to_string(joiner.world_size);
  }

  std::string operator()(const std::unique_ptr<RegroupWait>& wait) const {
    return of(wait->member.roster);
  }

  std::string operator()(const std::unique_ptr<RoundWait>& wait) const {
    const Round& round = wait->round;
    return of(wait->member.roster) + " round " + std::to_string(round.number) + " " +
           text_of(round.call);
  }

  std::string operator()(const std::unique_ptr<StreamWait>& wait) const {
    const Stream& stream = wait->stream;
    return of(stream.streams.roster()) + " from rank " + std::to_string(stream.key.source) +
           " tag " + std::to_string(stream.key.tag);
  }

 private:
  static std::string of(const Roster& roster) {
    return "group " + quoted(roster.group) + " epoch " + std::to_string(roster.epoch);
  }
};

}  // namespace

std::string target_of(const Parked& parked) { return std::visit(Target{}, parked.place); }

Parked::Parked(Session& its_session, std::uint64_t its_request_id, wire::Operation its_operation)
    : session(its_session),
      request_id(its_request_id),
      operation(its_operation),
      timer(TimerKind::parked, this) {
  session.name_space.quota.charge_always(parked_bytes);
}

Parked::~Parked() { session.name_space.quota.release(parked_bytes); }

void Parked::wait_at(std::unique_ptr<KeyWait> wait) { place = std::move(wait); }
void Parked::wait_at(std::unique_ptr<JoinWait> wait) { place = std::move(wait); }
void Parked::wait_at(std::unique_ptr<RegroupWait> wait) { place = std::move(wait); }
void Parked::wait_at(std::unique_ptr<RoundWait> wait) { place = std::move(wait); }
void Parked::wait_at(std::unique_ptr<StreamWait> wait) { place = std::move(wait); }
void Parked::leave_place() { place = std::monostate(); }

Session::Session(std::uint64_t its_id, NameSpace& its_name_space)
    : id(its_id), name_space(its_name_space), expiry(TimerKind::session, this) {}

Session::~Session() = default;

}  // namespace muster::core
