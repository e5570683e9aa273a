#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "script.h"
#include "wire/error_body.h"
#include "wire/hello.h"
#include "wire/request.h"

// A client as scripts imagine it: it keeps what a real one would keep (its session, its open
// requests, the counters of its groups) so that a script need not say what goes without saying.

namespace muster::script {

/// What a credential line grants; null: none, nobody asks who a client is.
using Grant = std::shared_ptr<const auth::Grant>;

/// A request together with the bytes that its views point to.
class OwnedRequest {
 public:
  std::string_view keep(std::string bytes);
  wire::Request request;

 private:
  std::deque<std::string> storage_;
};

/// A request that a client has sent, and what the script calls it.
struct Asked {
  OwnedRequest owned;
  std::string label;  ///< `as=`; may be empty
  std::string group;  ///< of a join or regroup
  int replies_due = 1;
};

/// (peer, tag) of a stream, and whether this client sends on it.
struct StreamKey {
  std::uint32_t peer = 0;
  std::uint64_t tag = 0;
  bool sends = false;
  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
};

struct GroupHandle {
  std::uint64_t epoch = 0;
  std::uint64_t next_round = 1;
  std::uint64_t next_attempt = 1;
  std::map<StreamKey, std::uint64_t> next_sequence;
  std::uint64_t next_interruption = 1;
};

struct Client {
  std::string name;
  wire::ClientHello hello;  ///< what it says when it connects
  Grant grant;              ///< of the credential that it proves
  std::string unit;
  bool is_of_own_user = false;  ///< of the server's, at a Unix socket
  core::ConnectionId connection = 0;
  core::ConnectionId closed_connection = 0;  ///< the last one that the server closed
  bool silent = false;
  bool keeps_echo = false;  ///< it does not say that it has read the server's hello
  std::uint64_t next_request_id = 1;
  std::uint64_t next_heartbeat = 1;
  std::map<std::uint64_t, std::unique_ptr<Asked>> asked;
  std::map<std::string, std::uint64_t, std::less<>> labels;
  std::vector<std::uint64_t> unacknowledged;
  std::map<std::string, GroupHandle, std::less<>> groups;
  std::string current_group;
  std::uint64_t list_cursor = 0;  ///< of the last page

  /// The group that the arguments name (`group=`), else the one formed last.
  GroupHandle& group(Arguments& arguments);
  std::uint64_t request_id(std::string_view label) const;
  /// The requests that the words name, or `last`, or `all` whose replies are not acknowledged.
  std::vector<std::uint64_t> ids(Arguments& arguments) const;
  /// Their replies are acknowledged.
  void forget(const std::vector<std::uint64_t>& ids);
};

/// Processes that scripts call by a name.
class Processes {
 public:
  ProcessId id_of(std::string_view name);
  std::string name_of(const ProcessId& id) const;

 private:
  std::vector<std::string> names_;
};

/// What a client says that begins a session, or resumes that of `honest`.
wire::ClientHello hello_of(Arguments& arguments, const std::string& name, Processes& processes);
wire::ClientHello resuming_hello_of(Arguments& arguments, const wire::ClientHello& honest);

/// The token that it sends back; a wrong one, if it is to be.
wire::ResumeToken echo_of(Arguments& arguments, const wire::ClientHello& own);

/// Makes the request that `verb` stands for; nothing when it stands for none.
std::unique_ptr<Asked> request_of(const std::string& verb, Arguments& arguments, Client& client,
                                  Processes& processes);

/// What a reply says. Moves the client's counters on.
Line reply_line(const Asked& asked, std::uint16_t code, std::string_view body, Client& client,
                const Processes& processes);

/// What an event says, after the client's name.
void tell(Line& line, const wire::Event& event, const Processes& processes);

/// Adds what `error` says to `line`.
void tell(Line& line, const Error& error, const Processes& processes);

/// "0-2,5"
std::string text_of(const std::vector<RankRange>& ranges);

}  // namespace muster::script
