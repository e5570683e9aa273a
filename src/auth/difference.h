#pragma once

#include <cstddef>
#include <vector>

#include "auth/credentials.h"

namespace muster::auth {

/// What has become of one credential in a newer version of the file.
struct Successor {
  enum class Kind {
    same,     ///< there, with the same grant
    changed,  ///< there, for the same identity, with another grant
    gone,     ///< the proof is not there, or is another identity's: whoever has used it has to go
  };

  Kind kind = Kind::gone;
  std::size_t position = 0;  ///< in the newer `all()`, unless it is gone

  friend bool operator==(const Successor&, const Successor&) = default;
};

/// How two versions of a file differ, for those who were admitted by the older one.
struct Difference {
  std::vector<Successor> successors;      ///< of the older `all()`, in its order
  std::vector<Identity> identities_gone;  ///< no line is left of them; in their order, each once
};

/// Grants of a Unix group, and of patterns that begin with `*.`, are compared as lines; whether a
/// peer has a line of its own now is found by looking it up.
Difference difference_of(const Credentials& older, const Credentials& newer);

}  // namespace muster::auth
