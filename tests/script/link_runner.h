#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/link/link.h"
#include "client_runner.h"
#include "core_client.h"
#include "link_world.h"
#include "script.h"

// Runs scripts against client::Link: the network, the server, the I/O thread and the time are
// imagined here (link_world.h).

namespace muster::script {

class LinkRunner : public Runner, public LinkWorldObserver {
 public:
  LinkRunner();
  ~LinkRunner() override;
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  /// A call that the script has made, until it is over.
  struct Made {
    LinkRunner* runner = nullptr;
    std::unique_ptr<Asked> asked;
    protocol::CallId id = 0;
    std::int64_t chained = 0;  ///< as many follow, each when the one before is over
    std::string value;         ///< that a take has brought
  };
  enum class Server { in_script, lives, hangs };
  class Watcher;

  void run_application_step(const std::string& verb, Arguments& arguments);
  bool run_network_step(const std::string& verb, Arguments& arguments);
  void run_server_step(const std::string& verb, Arguments& arguments);
  void open(Arguments& arguments);
  void call(Arguments& arguments);
  void submit(std::unique_ptr<Asked> asked, std::int64_t chained);
  void ended(Made& made, client::Outcome&& outcome);
  void give_back(std::uint64_t id);
  void cancel(Arguments& arguments);
  void watch(std::uint64_t epoch);
  void receive(const std::string& bytes);
  void tell_frame(int connection, Line told);
  Line& line(std::string words);

  void connecting() override;
  void caller_wrote(int connection, bool is_open) override;
  void arrived(int connection, std::string_view bytes) override;
  void closed(int connection, bool when_sent) override;
  void gone(int connection) override;

  LinkWorld* world_ = nullptr;  ///< the link's
  std::shared_ptr<client::Link> link_;
  Client client_;  ///< makes the requests
  Processes processes_;
  std::map<protocol::CallId, std::unique_ptr<Made>> made_;
  std::map<protocol::CallId, std::unique_ptr<Made>> kept_;  ///< takes that have brought a value
  std::map<protocol::CallId, client::Link::Submitted> submitted_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  std::map<int, std::string> streams_;  ///< what has arrived of a frame that is not whole
  int connection_ = 0;                  ///< the last one
  bool is_lasting_ = false;             ///< the call in hand
  Server server_ = Server::in_script;
  std::uint64_t heartbeat_ = 0;
  std::optional<std::unique_ptr<Asked>> call_when_gone_;
  std::vector<Line> lines_;
  client::Instant step_began_{};
  bool time_passes_ = false;
  bool is_torn_down_ = false;
};

}  // namespace muster::script
