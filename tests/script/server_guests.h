#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "script.h"
#include "server/settings.h"

// Clients of TCPStore's in scripts of the server: words to the bytes that they say, and the bytes
// that they are sent to lines.

namespace muster::script {

/// The ports for them, of the options of a script's server.
std::vector<server::tcpstore::Port> tcpstore_ports(Arguments& arguments,
                                                   const core::Options& options);

/// What one of them says and is answered.
class GuestTalk {
 public:
  /// A request, as it stands on the wire: its name and what belongs to it. Its answer is expected
  /// from now on.
  std::string says(Arguments& arguments);

  /// What bytes of one write tell: answers in the order of the requests. A byte that comes alone
  /// and answers none of them ends a wait.
  std::vector<Line> takes(std::string_view bytes);

 private:
  enum class Answer : std::uint8_t { byte, nonce, number, value, values, popped, list, cancelled };
  struct Expected {
    Answer answer;
    std::size_t count = 1;  ///< of values
  };
  class Cut;

  bool expects_byte() const;
  std::string request(const std::string& command, Arguments& arguments);
  void expect(Answer answer, std::size_t count = 1) { expected_.push_back({answer, count}); }

  std::deque<Expected> expected_;
  std::string received_;  ///< and not understood yet
};

}  // namespace muster::script
