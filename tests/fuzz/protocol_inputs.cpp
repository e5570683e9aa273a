#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "golden/again.h"
#include "golden/sample.h"

// Prints the inputs of one fuzzer that are made from the protocol's messages, in the format of
// corpus.py. A fuzzer that reads no messages has none.
//
//    protocol_inputs TARGET

using namespace muster;
using namespace muster::golden;

namespace {

/// The inputs of a fuzzer by their names.
std::map<std::string, std::string> inputs_of(std::string_view target) {
  std::map<std::string, std::string> inputs;
  std::string stream(9, '\0');  // the choices that the fuzzer `frames` reads first
  for (const Sample& sample : all_samples()) {
    if (!sample.framed) {
      if (target == "hello") inputs[sample.name] = sample.bytes;
      continue;
    }
    const wire::FrameHeader header = whole_frame(sample.bytes)->header;
    if (again_from_client(header) != nullptr) {
      if (target == "client_frames") inputs[sample.name] = sample.bytes;
      stream += sample.bytes;
    }
    if (target != "server_frames" || again_from_server(header, 0) == nullptr) continue;
    const auto* const again = sample.again.target<Again>();
    const auto kind = std::find(replies_again.begin(), replies_again.end(), *again);
    const auto index = (kind - replies_again.begin()) % std::ssize(replies_again);
    inputs[sample.name] = static_cast<char>(index) + sample.bytes;
  }
  if (target == "frames") inputs["client"] = stream;
  return inputs;
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(3, bytes.size()))) {
    unsigned bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = bits << 8 | (index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0U);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      text += index <= bytes.size() ? digits[bits >> (18 - 6 * index) & 63] : '=';
    }
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "protocol_inputs TARGET\n";
    return 2;
  }
  for (const auto& [name, bytes] : inputs_of(arguments[1])) {
    std::cout << name << ": " << base64(bytes) << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}
