#include "client/link/direct_writer.h"

namespace muster::client {

bool DirectWriter::write(protocol::Effects& effects, World& world) {
  auto only = effects.take_transmit();
  if (!only) return false;
  const std::size_t sent = world.send_now(descriptor_, only->bytes);
  if (sent == only->bytes.size()) {
    effects.give_spare(std::move(only->bytes));
    return true;
  }
  leftover_ = std::move(only->bytes);
  leftover_.erase(0, sent);
  forbid();
  return false;
}

}  // namespace muster::client
