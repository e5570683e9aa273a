#include "communicator/preflight.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "base/digest.h"
#include "communicator/messages.h"

namespace muster::communicator {

std::uint64_t digest_of_epoch(const StatelessProcessGroup& group) {
  std::string text = group.name() + '/';
  for (const std::uint64_t number :
       {group.store().incarnation(), group.epoch(), std::uint64_t(group.world_size())}) {
    append_number(text, number);
  }
  return base::digest_of(text);
}

std::uint64_t host_digest() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return base::digest_of(std::string(name) + boot);
}

}  // namespace muster::communicator
