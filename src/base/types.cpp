#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

std::string to_string(const ProcessId& id) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * id.bytes.size());
  for (const std::uint8_t byte : id.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

MUSTER_END_NAMESPACE
