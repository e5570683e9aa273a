#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "core_client.h"
#include "script.h"

// Runs scripts against core::Engine: clients, the time, and the server are imagined here.

namespace muster::script {

class CoreRunner : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  // Steps of nobody in particular.
  void start_server(Arguments& arguments);
  void set_credential(Arguments& arguments);
  void revoke(Arguments& arguments);
  void pass(Duration duration);
  /// Nothing is handled; for `gap` of it the process does not run.
  void pause(Duration duration, Duration gap);
  void tell_counts(Arguments& arguments);
  void tell_figures();
  bool run_server_step(const Step& step, Arguments& arguments);

  // Steps of a client.
  Grant credential(Arguments& arguments) const;
  static Grant grant_of(Arguments& arguments);
  void connect(Client& client, Arguments& arguments);
  void resume(Client& client, Arguments& arguments);
  void disconnect(Client& client, core::DisconnectCause cause);
  void acknowledge(Client& client, Arguments& arguments, std::string_view verb);
  void repeat(Client& client, Arguments& arguments);
  void heartbeat(Client& client, Arguments& arguments);
  void echo(Client& client, Arguments& arguments);
  void ask(Client& client, const std::string& verb, Arguments& arguments);
  void send(Client& client, Asked& asked);
  bool run_link_step(const std::string& verb, Client& client, Arguments& arguments);
  void run_client_step(const Step& step, const std::string& actor, Arguments& arguments);

  // Events in, lines out.
  void say_hello(Client& client);
  void apply_from(const Client& client, const core::Event& event);
  void apply(const core::Event& event);
  void tell_all(std::vector<core::Effect>& all);
  void advance_what_is_due();
  void beat_all();
  void tell(const core::SendHello& effect);
  void tell(const core::SendReply& effect);
  void tell(const core::SendEvent& effect);
  void tell(const core::SendHeartbeatReply& effect);
  void tell(const core::SendGoodbye& effect);
  void tell(const core::Postpone& effect);
  void tell(const core::Close& effect);
  void tell(const core::Log& effect);
  void tell(const core::ForHost& effect);
  Line& line(std::string words);
  Line& line_at(core::ConnectionId connection, std::string words);
  Client& client_at(core::ConnectionId connection);

  core::Engine& engine();

  std::unique_ptr<core::Engine> engine_;
  core::Instant now_{std::chrono::seconds(1000)};
  core::Instant step_began_ = now_;
  bool time_passes_ = false;
  bool shows_logs_ = false;
  bool puts_off_ = false;
  std::uint64_t incarnation_ = 100;
  Duration heartbeat_{};
  std::map<std::string, Client> clients_;
  std::map<std::string, Grant, std::less<>> grants_;  // by the names of credential lines
  std::map<core::ConnectionId, std::string> owners_;  // every connection that there was
  core::ConnectionId last_connection_ = 0;
  Processes processes_;
  std::vector<Line> lines_;
};

}  // namespace muster::script
