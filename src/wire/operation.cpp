#include "wire/operation.h"

namespace muster::wire {

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
