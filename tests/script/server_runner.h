#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core_client.h"
#include "script.h"
#include "server/service.h"
#include "server_guests.h"
#include "server_world.h"

// Runs scripts against server::Service: connections, clients and the time are imagined here.

namespace muster::script {

/// A connection as its client sees it.
struct Connection {
  std::string owner;
  std::shared_ptr<FakeChannel> channel;
  std::string received;                        ///< and not understood yet
  std::map<std::uint64_t, std::string> parts;  ///< of long replies
  std::uint64_t parts_count = 0;
  int writes = 0;  ///< of the service, in this step
  bool has_hello = false;
  std::string echo;                  ///< that its client has to send before anything else
  std::unique_ptr<GuestTalk> guest;  ///< of a client of TCPStore's; null: it is of Muster's
};

/// A client of the scripts of core, with what it has to do with connections.
struct ConnectedClient {
  Client client;
  Connection* connection = nullptr;  ///< the last one
  std::string later;                 ///< what it has written and not sent
  bool writes_later = false;
};

class ServerRunner : public Runner {
 public:
  ~ServerRunner() override;
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  // Steps of nobody in particular.
  void start_server(Arguments& arguments);
  bool run_server_step(const Step& step, Arguments& arguments);
  void stop(Arguments& arguments);
  void pass(Duration duration);
  void stand_still(Duration duration, bool works);
  void pass_to(base::Instant next);
  base::Instant next_event(base::Instant end) const;
  void beat_all();
  void settle();
  bool run_turn();

  // Steps of a client.
  void run_client_step(const Step& step, const std::string& actor, Arguments& arguments);
  bool run_connection_step(const std::string& verb, ConnectedClient& one, Arguments& arguments);
  bool run_socket_step(const std::string& verb, ConnectedClient& one, Arguments& arguments);
  bool run_frame_step(const std::string& verb, ConnectedClient& one, Arguments& arguments);
  void connect(ConnectedClient& one, Arguments& arguments);
  void say_hello(ConnectedClient& one);
  void take(ConnectedClient& one, Arguments& arguments);
  void send_later(ConnectedClient& one, Arguments& arguments);
  void ask(ConnectedClient& one, const std::string& verb, Arguments& arguments);
  void ask_unknown(ConnectedClient& one, Arguments& arguments);
  void write(ConnectedClient& one, std::string_view bytes);

  // What comes of it.
  void took(Connection& connection, std::string_view bytes);
  void took_as_guest(Connection& connection, std::string_view bytes);
  bool read_hello(Connection& connection);
  bool read_frame(Connection& connection);
  void tell(Connection& connection, const wire::ServerHello& hello);
  void tell(Connection& connection, const wire::Frame& frame);
  void tell_reply(Connection& connection, const wire::Frame& frame);
  Line& line(std::string words);
  Line& line_of(const Connection& connection, const std::string& words);

  server::Service& service();

  FakeWorld world_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< all that there were
  std::map<std::string, ConnectedClient> clients_;
  Processes processes_;
  std::unique_ptr<server::Service> service_;
  Duration heartbeat_{};
  std::uint64_t incarnation_ = 100;
  base::Instant step_began_{};
  bool time_passes_ = false;
  bool shows_logs_ = false;
  bool memory_is_short_ = false;
  bool is_in_turn_ = false;  ///< what the script says belongs to one turn of the loop
  std::vector<Line> lines_;
};

}  // namespace muster::script
