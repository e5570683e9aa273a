#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/protocol/group_state.h"
#include "client/protocol/protocol.h"
#include "core_client.h"
#include "script.h"

// Runs scripts against client::protocol::Protocol: the network, the server and the time are
// imagined here. client/README.md is for those who write such scripts.

namespace muster::script {

namespace protocol = client::protocol;

/// That its hellos give to a session.
wire::ResumeToken script_token();
/// What the imagined server says, as bytes. `asked` is the request that a reply is for.
std::string hello_bytes(Arguments& arguments, Processes& processes, std::uint16_t status);
std::string reply_bytes(const Asked& asked, std::uint64_t id, Arguments& arguments);
/// To a cancel_take.
std::string cancel_reply_bytes(std::uint64_t id, Arguments& arguments);
std::string error_bytes(std::uint64_t id, Arguments& arguments);
std::string event_bytes(Arguments& arguments);

/// The code that a script calls `name`. Throws ScriptError.
ErrorCode code_of(std::string_view name);

/// Takes the first frame from `bytes`, or the hello, which nothing follows, and tells of it: of a
/// request which one it is, of others `hello`, `heartbeat` and so on. Nothing: it is not whole.
std::optional<Line> take_line(std::string_view& bytes);
/// How a call ended.
Line completion_line(protocol::CallId call, const Asked& asked, const Result<std::string>& reply,
                     protocol::Fate fate, Client& client, const Processes& processes);

class ClientRunner : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  void open(Arguments& arguments);
  void run_client_step(const std::string& verb, Arguments& arguments);
  bool run_network_step(const std::string& verb, Arguments& arguments);
  void run_server_step(const std::string& verb, Arguments& arguments);
  void pass(Duration duration);

  void call(Arguments& arguments);
  std::optional<Error> number(wire::RequestBody& body);
  void unnumber(const Asked& asked, const Error* error, protocol::Fate fate);
  void resolve(const Asked& asked, std::string_view body);
  void tell_counters();

  void apply(const protocol::Input& input);
  void receive(std::string bytes, bool of_attempt = false);
  void tell_effects();
  void tell(const protocol::Connect& effect);
  void tell(const protocol::Disconnect& effect);
  void tell(const protocol::Transmit& effect);
  void tell_transmitted(Line told);
  void tell(const protocol::Complete& effect);
  void tell(const protocol::Notify& effect);
  void tell(const protocol::Established& effect);
  void tell(const protocol::Log& effect);
  Line& line(std::string words);
  protocol::Protocol& machine();

  std::unique_ptr<protocol::Protocol> protocol_;
  std::unique_ptr<protocol::GroupState> group_;
  protocol::Instant now_{std::chrono::seconds(1000)};
  protocol::Instant step_began_ = now_;
  bool time_passes_ = false;
  bool shows_logs_ = false;
  enum class Attempts { in_script, refused, refused_and_shown, hanging };
  Attempts attempts_ = Attempts::in_script;  ///< what comes of them, where a script need not say
  bool server_lives_ = false;                ///< it answers heartbeats, and nobody is shown that
  std::uint64_t heartbeat_ = 0;              ///< the last one that was sent
  Client client_;                            ///< makes the requests
  Processes processes_;
  std::map<std::uint64_t, std::unique_ptr<Asked>> asked_;
  std::vector<Line> lines_;
};

}  // namespace muster::script
