#pragma once

#include "muster/process_group_options.h"
#include "wire/reply.h"

namespace muster::client {

inline MemberInfo public_form(const wire::MemberEntry& entry) {
  MemberInfo member;
  member.rank = static_cast<int>(entry.rank);
  switch (entry.state) {
    case wire::MemberState::live: member.state = MemberState::live; break;
    case wire::MemberState::silent: member.state = MemberState::silent; break;
    case wire::MemberState::lost: member.state = MemberState::lost; break;
    case wire::MemberState::left: member.state = MemberState::left; break;
    case wire::MemberState::candidate: member.state = MemberState::candidate; break;
    case wire::MemberState::away: member.state = MemberState::away; break;
  }
  member.process = entry.process;
  member.silence = entry.silence;
  member.info = entry.info;
  return member;
}

}  // namespace muster::client
