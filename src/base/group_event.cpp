#include "muster/group_event.h"

MUSTER_BEGIN_NAMESPACE

std::string_view name_of(GroupEventKind kind) {
  switch (kind) {
    case GroupEventKind::formed: return "formed";
    case GroupEventKind::regrouped: return "regrouped";
    case GroupEventKind::rank_lost: return "rank_lost";
    case GroupEventKind::rank_left: return "rank_left";
    case GroupEventKind::round_failed: return "round_failed";
    case GroupEventKind::join_refused: return "join_refused";
    case GroupEventKind::join_timed_out: return "join_timed_out";
    case GroupEventKind::ended: return "ended";
  }
  return "unknown";
}

MUSTER_END_NAMESPACE
