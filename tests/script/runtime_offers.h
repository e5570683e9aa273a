#pragma once

#include <string>
#include <vector>

#include "muster/result.h"
#include "runtime/tensor/offer.h"
#include "script.h"

namespace muster::script {

/// What the ranks tell each other at the beginning of a collective on tensors.
class Offers {
 public:
  void add(Arguments& words);
  void cut(Arguments& words);
  Result<void> compare();

 private:
  std::vector<std::string> sent_;
};

}  // namespace muster::script
