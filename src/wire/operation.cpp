#include "wire/operation.h"

namespace muster::wire {

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::set: return "set";
    case Operation::get: return "get";
    case Operation::take: return "take";
    case Operation::add: return "add";
    case Operation::compare_set: return "compare_set";
    case Operation::append: return "append";
    case Operation::remove: return "remove";
    case Operation::exists: return "exists";
    case Operation::wait: return "wait";
    case Operation::multi_get: return "multi_get";
    case Operation::multi_set: return "multi_set";
    case Operation::list: return "list";
    case Operation::touch: return "touch";
    case Operation::join: return "join";
    case Operation::leave: return "leave";
    case Operation::regroup: return "regroup";
    case Operation::members: return "members";
    case Operation::report_dead: return "report_dead";
    case Operation::cancel_regroup: return "cancel_regroup";
    case Operation::collective: return "collective";
    case Operation::cancel_round: return "cancel_round";
    case Operation::send: return "send";
    case Operation::receive: return "receive";
    case Operation::expire_data: return "expire_data";
    case Operation::recover: return "recover";
    case Operation::status: return "status";
    case Operation::sessions: return "sessions";
    case Operation::groups: return "groups";
    case Operation::inspect_group: return "inspect_group";
    case Operation::waiters: return "waiters";
  }
  return "";
}

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return "broadcast";
    case Collective::all_gather: return "all_gather";
    case Collective::gather: return "gather";
    case Collective::scatter: return "scatter";
  }
  return "";
}

}  // namespace muster::wire
