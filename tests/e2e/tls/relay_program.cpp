#include <unistd.h>

#include <cstdio>

#include "support/tls_relay.h"

// A server that speaks TLS, for tests in other languages: a relay before the server at SERVER.
//
// relay_program SERVER KEY   prints its address, and ends when its standard input does

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  muster::test::TlsRelay relay({argv[1], {argv[2]}, {}});
  std::printf("%s\n", relay.address().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
