#include "core/memory/frame_charging.h"

#include "wire/operation_table.h"

namespace muster::core {

Charging charging_of(const wire::FrameHeader& header, std::uint32_t essential_bytes_max) {
  if (header.body_bytes > essential_bytes_max) return Charging::normal;
  const Charging essential =
      header.body_bytes <= freeing_body_bytes_always ? Charging::always : Charging::reserve;
  if (header.type != wire::FrameType::request) return essential;
  const auto index = wire::find_operation(header.code);
  if (!index) return Charging::normal;
  switch (wire::operation_facts[*index].memory) {
    case wire::Memory::keeps: break;
    case wire::Memory::reads: return Charging::reserve;
    case wire::Memory::frees: return essential;
  }
  return Charging::normal;
}

}  // namespace muster::core
