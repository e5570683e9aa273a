// All clients of a group lose their connections at the same moment, and have to be back within the
// server's grace: with TLS each of them shakes hands again.

#include "questions.h"
#include "ranks.h"

namespace muster::bench {

void measure_reconnect(Run& run) {
  place_client(Cores::two);
  const int count = run.by_extent(16, 1000, 1000);
  const Json parameters = {{"ranks", count}};
  if (!run.wants(parameters)) return;
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<std::unique_ptr<Ranks>> ranks;
  for (const Wire wire : {Wire::clear, Wire::encrypted}) {
    subjects.push_back(run.start(Kind::muster, {}, wire));
    ranks.push_back(std::make_unique<Ranks>(*subjects.back()));
    ranks.back()->connect(count);
    ranks.back()->join();
  }
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    const Json found = ranks[i]->reconnect();
    ranks[i]->round(wire::Collective::barrier, {});  // in the same epoch: nobody was lost
    run.record("encrypted_reconnect", parameters, subjects[i]->name(), found);
  });
}

}  // namespace muster::bench
