#include "communicator/forked.h"

#include <atomic>
#include <utility>

namespace muster::communicator {
namespace {

struct Kept {
  std::shared_ptr<void> object;
  Kept* next = nullptr;
};
constinit std::atomic<Kept*> kept{nullptr};

}  // namespace

void keep_forever(std::shared_ptr<void> object) {
  auto* const entry = new Kept{std::move(object), kept.load()};
  while (!kept.compare_exchange_weak(entry->next, entry)) {
  }
}

}  // namespace muster::communicator
