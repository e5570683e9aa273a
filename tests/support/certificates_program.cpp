// Certificates for the tests in Python, in the form PEM.
//
//     certificates_program
//
// Prints a line of JSON with the files of an authority, of what it has signed, and of one whom
// another authority has signed. They are there until the standard input ends.

#include <iostream>
#include <string>

#include "support/certificates.h"

int main() {
  muster::test::Authority authority;
  muster::test::Authority other;
  const auto server = authority.sign("DNS:localhost,IP:127.0.0.1");
  const auto client = authority.sign("DNS:client");
  const auto stranger = other.sign("DNS:client");
  const auto entry = [](const std::string& name, const std::string& path) {
    return "\"" + name + "\": \"" + path + "\"";
  };
  std::cout << "{" << entry("authority", authority.path()) << ", "
            << entry("server", server.certificate) << ", " << entry("server_key", server.key)
            << ", " << entry("client", client.certificate) << ", "
            << entry("client_key", client.key) << ", " << entry("stranger", stranger.certificate)
            << ", " << entry("stranger_key", stranger.key) << "}" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}
