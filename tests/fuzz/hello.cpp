#include "wire/hello.h"

#include "fuzz.h"
#include "golden/again.h"

// The first bytes of a connection, as the server and as the client read them.

using namespace muster;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  using golden::is_settled_by;
  fuzz::require(is_settled_by(golden::client_hello_again, bytes), "a client's hello is settled");
  fuzz::require(is_settled_by(golden::server_hello_again, bytes), "a server's hello is settled");
  if (!wire::check_magic(bytes.substr(0, 8))) {
    fuzz::require(!wire::decode_client_hello(bytes), "who is refused early is refused later");
    fuzz::require(!wire::decode_server_hello(bytes), "who is refused early is refused later");
  }
  return 0;
}
