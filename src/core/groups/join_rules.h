#pragma once

#include <cstdint>
#include <string>

#include "core/groups/epoch.h"
#include "core/groups/joiners.h"

namespace muster::core {

/// What becomes of a session that wants to be in a group.
struct Verdict {
  enum class Kind {
    refuse,
    same_answer,  ///< it is a member of a whole epoch
    regroup,      ///< it is a member of one that is not whole
    attach,       ///< it waits already
    seat,
    candidate,
    claim,
    displace_member,  ///< the rank's holder is gone; judge again without it
    displace_joiner,
  };
  Kind kind;
  Error error;
  Member* member = nullptr;
  Joiner* joiner = nullptr;
  Session* holder = nullptr;

  static Verdict refusal(Error why) { return {Kind::refuse, std::move(why)}; }
};

/// The join rules. They are applied when a join comes, and again whenever its joiner has lost its
/// place. They change nothing.
class JoinRules {
 public:
  /// `epoch` is the group's; null: it forms.
  JoinRules(EngineServices& services, const std::string& group, Epoch* epoch,
            const Joiners& joiners)
      : services_(services), group_(group), epoch_(epoch), joiners_(joiners) {}

  Verdict judge(const Session& session, const wire::Join& request) const;
  Error in_use_error(const Session& holder, std::uint32_t rank) const;
  /// An error of the group, decided by the server.
  Error error(ErrorCode code, std::string detail) const;
  /// `detail`: what of the group is other than it was given.
  Error mismatch_error(std::string detail) const;

 private:
  Verdict judge_forming(const wire::Join& request) const;
  Verdict judge_formed(const Session& session, const wire::Join& request) const;
  Verdict judge_holder(Session& holder, std::uint32_t rank) const;
  Error mismatch_error(std::uint64_t expected, std::uint64_t actual, std::string detail) const;
  Error closed_error() const;

  EngineServices& services_;
  const std::string& group_;
  Epoch* epoch_;
  const Joiners& joiners_;
};

}  // namespace muster::core
