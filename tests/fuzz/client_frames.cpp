#include <string>

#include "fuzz.h"
#include "golden/again.h"

// What a server reads: requests and the one-way frames. The length in the header is set right, so
// that every input is a frame.

using namespace muster;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  golden::tell_true_length(bytes);
  const Result<wire::Frame> frame = golden::whole_frame(bytes);
  if (!frame) return 0;
  const golden::Again again = golden::again_from_client(frame->header);
  if (again == nullptr) return 0;
  fuzz::require(golden::is_settled_by(again, bytes), "what a client sends is settled");
  (void)golden::ids_again(bytes);  // a request's prefix is read alone, too
  return 0;
}
