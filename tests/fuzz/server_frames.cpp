#include <string>

#include "fuzz.h"
#include "golden/again.h"

// What a client reads: replies of each kind, errors, events and goodbyes. The first byte chooses
// the kind that the call expects; the length in the header is set right.

using namespace muster;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t expected = input.below(golden::replies_again.size());
  std::string bytes(input.rest());
  golden::tell_true_length(bytes);
  const Result<wire::Frame> frame = golden::whole_frame(bytes);
  if (!frame) return 0;
  const golden::Again again = golden::again_from_server(frame->header, expected);
  if (again == nullptr) return 0;
  fuzz::require(golden::is_settled_by(again, bytes), "what a server sends is settled");
  return 0;
}
