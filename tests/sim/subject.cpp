#include "subject.h"

#include "job/world.h"
#include "world.h"

namespace muster::sim {

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"server",
       {"calls", "rounds", "epochs", "requests of guests"},
       0,
       1000,
       [](std::uint64_t seed, bool is_printed) { return World(seed, is_printed).run(); }},
      {"job",
       {job::count_names.begin(), job::count_names.end()},
       10000,
       50000,
       [](std::uint64_t seed, bool is_printed) { return job::World(seed, is_printed).run(); }},
  };
  return all;
}

const Subject* subject_of(std::string_view name) {
  for (const Subject& subject : subjects())
    if (subject.name == name) return &subject;
  return nullptr;
}

}  // namespace muster::sim
