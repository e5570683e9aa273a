// The parent of the demo: starts musterd and the processes, leads them from scene to scene, and
// checks and prints what they report.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cast.h"
#include "child.h"
#include "demo.h"
#include "muster/inspect.h"
#include "muster/store.h"
#include "page.h"

namespace demo {
namespace {

using Json = nlohmann::json;
using muster::Result;

constexpr std::int64_t demo_us_max = 20'000'000;
constexpr std::int64_t hang_us = 1'000'000;
// A loaded machine keeps this, too; the demo prints the time.
constexpr std::int64_t loss_us_max = 5'000'000;
constexpr std::int64_t why_us_max = 1'000'000;

// How long a closed connection may take to come back before its rank counts as lost. musterd's
// default is 2 s; nothing in this demo reconnects, so it can be told sooner.
constexpr const char* grace = "100ms";

template <class T>
T require(Result<T> result) {
  if (!result.has_value()) throw Broken(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
using demo::require;

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

class Conductor {
 public:
  explicit Conductor(const Programs& programs)
      : programs_(programs), cast_(now_us() + demo_us_max) {}

  void run();

 private:
  void start_server();
  void start_worker(int process, const char* role);
  void form();
  void objects();
  void weights();
  void hang();
  void loss();
  void comeback();
  void end();

  void begin(Scene scene);
  void await_arrival(int processes);
  void await(const std::function<bool()>& holds);
  bool are_waiting(const char* group, int count);
  std::uint64_t status(const std::string& name);

  Programs programs_;
  Page page_;
  Cast cast_;
  std::unique_ptr<Child> server_;
  std::string address_;
  std::optional<muster::Store> store_;
  std::size_t arrivals_ = 0;
};

/// Lets those in that wait for the scene.
void Conductor::begin(Scene scene) { require(store_->set(scene_key(scene), "")); }

/// Waits until so many processes are through with the scene and have come to the next one.
void Conductor::await_arrival(int processes) {
  arrivals_ += static_cast<std::size_t>(processes);
  cast_.await("at", arrivals_);
  require(cast_.sum("wrong") == 0, "no value is wrong");
}

void Conductor::await(const std::function<bool()>& holds) {
  while (!holds()) {
    require(cast_.left_ms() > 0, "the demo ends in its time");
    ::poll(nullptr, 0, 5);
  }
}

/// Whether so many ranks of the group wait in a round.
bool Conductor::are_waiting(const char* group, int count) {
  const auto report = require(muster::inspect_group(*store_, group));
  if (!report.round) return false;
  int called = 0;
  for (const auto range : report.round->called) called += range.last - range.first + 1;
  return called == count;
}

std::uint64_t Conductor::status(const std::string& name) {
  for (const auto& [key, value] : require(store_->status())) {
    if (key == name) return std::stoull(value);
  }
  throw Broken("the server's status has " + name);
}

/// musterd chooses the port and says so on its standard output.
void Conductor::start_server() {
  server_ = std::make_unique<Child>(
      "musterd", std::vector<std::string>{programs_.musterd, "--listen", "127.0.0.1:0", "--grace",
                                          grace, "--log-level", "error"});
  const std::string mark = "listening on ";
  while (address_.empty() && server_->output_open()) {
    pollfd ready{server_->output(), POLLIN, 0};
    require(::poll(&ready, 1, cast_.left_ms()) > 0, "musterd says where it listens");
    for (const std::string& line : server_->read_lines()) {
      const auto at = line.find(mark);
      if (at != std::string::npos) address_ = line.substr(at + mark.size());
    }
  }
  require(!address_.empty(), programs_.musterd + " starts");
  store_ = require(muster::Store::connect(address_, {}, std::chrono::seconds(5)));
}

void Conductor::start_worker(int process, const char* role) {
  cast_.start(process, {programs_.self, role, std::to_string(process), address_});
}

void Conductor::form() {
  page_.title("Six processes form overlapping groups, with one connection each");
  start_server();
  page_.line("musterd", text("pid %d, %s; state in memory only", static_cast<int>(server_->pid()),
                             address_.c_str()));
  const std::int64_t began_us = now_us();
  for (int process = 0; process < process_count; ++process) start_worker(process, "--worker");
  await_arrival(process_count);
  const std::int64_t took_us = now_us() - began_us;
  for (const GroupPlan& group : plan) {
    const auto report = require(muster::inspect_group(*store_, group.name));
    std::string members;
    for (std::size_t rank = 0; rank < group.processes.size(); ++rank) {
      const int process = group.processes[rank];
      require(static_cast<int>(report.members.at(rank).process.pid) == cast_.at(process).pid(),
              "each rank is the process that it should be");
      members += " " + std::to_string(process);
    }
    page_.line(group.name,
               text("epoch %d, processes%s", static_cast<int>(report.epoch), members.c_str()));
  }
  require(status("connections_count") == process_count + 1, "one connection per process, and ours");
  page_.line("together",
             text("%d connections, process 3 is in 4 groups over one; all formed %s after "
                  "the start",
                  process_count, milliseconds(took_us).c_str()));
}

void Conductor::objects() {
  page_.title("Objects: a broadcast and an all_gather per group; two senders to one receiver");
  begin(Scene::objects);
  await_arrival(process_count);
  std::size_t from[2] = {0, 0};
  for (const Fact& fact : cast_.facts("delivered")) ++from[fact.value == "1" ? 1 : 0];
  require(from[0] == objects_per_sender && from[1] == objects_per_sender,
          "each object is delivered once");
  page_.line("muster", text("%d of %d from rank 0 and %d of %d from rank 1, in order",
                            static_cast<int>(from[0]), objects_per_sender,
                            static_cast<int>(from[1]), objects_per_sender));
  page_.line("incumbent", "the sender is not in the key: one rank's object is delivered twice (1)");
}

void Conductor::weights() {
  page_.title("A new version of the weights: one manifest and one barrier, or one per parameter");
  begin(Scene::weights);
  await_arrival(process_count);
  const auto by_manifest = cast_.sum("by_manifest_us");
  const auto by_parameter = cast_.sum("by_parameter_us");
  require(by_manifest < by_parameter, "one manifest is quicker than one message per parameter");
  page_.line("muster",
             text("%s per version: one broadcast of the manifest of 64 tensors, one barrier",
                  milliseconds(by_manifest).c_str()));
  page_.line("muster",
             text("%s per version, %.0f times as long: a broadcast and a barrier per tensor",
                  milliseconds(by_parameter).c_str(),
                  static_cast<double>(by_parameter) / static_cast<double>(by_manifest)));
  page_.line("incumbent", "TRL on vLLM: a barrier per parameter; 500 barriers leave 500 keys (1)");
}

void Conductor::hang() {
  page_.title("A rank hangs: process 4 is stopped, the others wait in a barrier");
  const int pid = static_cast<int>(cast_.at(hanging).pid());
  cast_.at(hanging).stop();
  begin(Scene::hang);
  await([&] { return are_waiting("weights", process_count - 1); });
  ::poll(nullptr, 0, hang_us / 1000);
  const std::int64_t began_us = now_us();
  const auto why = Json::parse(
      output_of({programs_.musterctl, "--server", address_, "--json", "why", "weights"}));
  const std::int64_t took_us = now_us() - began_us;
  require(took_us < why_us_max, "why is answered within a second");
  require(why.at("round").at("missing") == Json::array({hanging}), "why names the rank");
  const Json& member = why.at("members").at(hanging);
  require(member.at("pid") == pid, "why names the pid");
  require(member.at("host") == host_name(), "why names the host");
  require(member.at("silence_s") >= static_cast<double>(hang_us) / 1e6, "why tells the silence");
  std::string explanation;
  for (const Json& explained : why.at("explanation")) {
    explanation += explained.get<std::string>() + '\n';
  }
  const std::string named = text("rank %d (host %s, pid %d, label demo-%d, silent for ", hanging,
                                 host_name().c_str(), pid, hanging);
  require(explanation.find(named) != std::string::npos, "why says so to people, too");
  page_.line("musterctl", text("why weights, answered after %s:", milliseconds(took_us).c_str()));
  for (const Json& explained : why.at("explanation")) {
    page_.line("", "  " + explained.get<std::string>());
  }
  page_.line("incumbent",
             "nothing while it hangs; barrier(timeout=2), with a store's time-out of "
             "20 s, ends after 20.9 s and names nobody (1)");
  cast_.at(hanging).send_signal(SIGCONT);
  await_arrival(process_count);
  page_.line("muster", "process 4 goes on, the barrier passes on all 6 ranks, nobody was lost");
}

void Conductor::loss() {
  page_.title("kill -9 of process 2");
  begin(Scene::loss);
  await([&] { return are_waiting("weights", process_count - 1); });
  require(store_->set("demo/victim_pid", std::to_string(cast_.at(victim).pid())));
  require(store_->set("demo/killed_us", std::to_string(now_us())));
  cast_.kill(victim);
  // Five survivors of `weights`, two of `slice-a`.
  cast_.await("noticed_us", 7);
  for (const Fact& fact : cast_.await("loss", 2)) {
    require(fact.value.find(text("pid %s,", require(store_->get("demo/victim_pid")).c_str())) !=
                std::string::npos,
            "the message names the pid");
    page_.line("muster", fact.value);
  }
  require(cast_.max("noticed_us") < loss_us_max, "survivors are notified within 5 s");
  page_.line("muster", text("the last of 5 survivors was told after %s, of them the grace for a "
                            "reconnect %s, as musterd was started here (default 2 s)",
                            milliseconds(cast_.max("noticed_us")).c_str(), grace));
  page_.line("incumbent", "nobody is told: whoever receives waits for the store's time-out, 300 s");
  await_arrival(process_count - 1);
  const auto report = require(muster::inspect_group(*store_, "weights"));
  require(report.world_size == process_count - 1, "the survivors have regrouped");
  page_.line("muster",
             text("weights regrouped: epoch %d, %d ranks; the next version went to all of them",
                  static_cast<int>(report.epoch), report.world_size));
}

void Conductor::comeback() {
  page_.title("Process 2 comes back");
  start_worker(victim, "--worker-again");
  begin(Scene::comeback);
  await_arrival(process_count);
  const auto report = require(muster::inspect_group(*store_, "weights"));
  require(report.world_size == process_count &&
              report.members.at(5).process.pid == static_cast<unsigned>(cast_.at(victim).pid()),
          "the process is a member again");
  const auto& first = cast_.facts("first_object").at(0).value;
  require(first == "of the new epoch", "no old object is delivered");
  page_.line("muster",
             text("weights regrouped: epoch %d, %d ranks; pid %d is rank 5 and has the version",
                  static_cast<int>(report.epoch), report.world_size,
                  static_cast<int>(cast_.at(victim).pid())));
  page_.line("muster", "an object was waiting for the killed process; the new one got object 0 \"" +
                           first + "\"");
  page_.line("incumbent", "a rank that restarts gets objects of the earlier run (1)");
}

void Conductor::end() {
  begin(Scene::end);
  cast_.await("barriers", process_count);
  cast_.await("checked", process_count + 1);  // the victim told of what it had checked, too
  cast_.await_ends();
  for (int scene = static_cast<int>(Scene::objects); scene <= static_cast<int>(Scene::end);
       ++scene) {
    require(store_->remove(scene_key(static_cast<Scene>(scene))));
  }
  require(store_->multi_remove({"demo/victim_pid", "demo/killed_us", "demo/next_version"}));
  for (const char* const kind : {"objects", "groups", "rounds", "streams", "waits"}) {
    require(status(kind + std::string("_count")) == 0, std::string("no ") + kind + " are left");
  }
  const auto keys_left = status("keys_count");
  store_->close();
  server_->send_signal(SIGTERM);
  require(server_->wait() == 0, "musterd ends in order");
  require(keys_left == 0, "no key is left");
  require(cast_.sum("wrong") == 0, "no value is wrong");
  page_.note(
      "(1) measured with TCPStore of PyTorch 1.13.1 and the algorithm of vLLM's "
      "StatelessProcessGroup");
  page_.note(text("barriers %" PRId64 ", %" PRId64 " us each; keys left %" PRIu64
                  ", wrong values %" PRId64 " of %" PRId64 "; %.1f s",
                  cast_.sum("barriers"), cast_.sum("barrier_us"), keys_left, cast_.sum("wrong"),
                  cast_.sum("checked"), page_.seconds()));
}

void Conductor::run() {
  form();
  objects();
  weights();
  hang();
  loss();
  comeback();
  end();
}

}  // namespace

int run_conductor(const Programs& programs) {
  ::signal(SIGPIPE, SIG_IGN);
  // Whatever hangs: with this process its children end.
  ::signal(SIGALRM, [](int) {
    constexpr char late[] = "\nNOT AS PROMISED: the demo ends in its time\n";
    static_cast<void>(!::write(STDOUT_FILENO, late, sizeof late - 1));
    ::_exit(1);
  });
  ::alarm(demo_us_max / 1'000'000);
  try {
    Conductor(programs).run();
    return 0;
  } catch (const std::exception& error) {
    Page().note("NOT AS PROMISED: " + std::string(error.what()));
    return 1;
  }
}

}  // namespace demo
