#include "questions.h"

namespace muster::bench {

const std::vector<Question>& all_questions() {
  static const std::vector<Question> questions = {
      {"operations", "set, get and add: connections, depth of the pipeline, size of the value",
       measure_operations},
  };
  return questions;
}

std::string name_of(Cores cores) { return cores == Cores::one ? "1cpu" : "2cpu"; }

void place_client(Cores cores) { pin_to(cores == Cores::one ? server_core() : client_core()); }

}  // namespace muster::bench
