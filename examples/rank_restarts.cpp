// A rank is killed and comes back under its old number: the others learn who was lost, nobody is
// given an object of the old epoch, and the next epoch has all ranks again.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "in_one_process.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

namespace {

StatelessProcessGroup join(const muster::Store& store, int rank) {
  muster::GroupOptions options;
  options.timeout = 10s;
  return require(StatelessProcessGroup::create(store, "job", rank, 2, std::move(options)));
}

/// Rank 1 in a process of its own, which begins when it is told the server's address. The first
/// one joins and is killed; the second one is its restart.
class RankOne {
 public:
  explicit RankOne(bool is_restart) {
    require(::pipe(pipe_) == 0, "a pipe");
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char address[64] = {};
    require(::read(pipe_[0], address, sizeof address - 1) > 0, "an address to connect to");
    auto store = require(muster::Store::connect(address));
    auto group = join(store, 1);
    if (!is_restart) ::pause();
    require(require(group.recv_obj<std::string>(muster::Rank{0}, 10s)) == "of the new epoch",
            "nothing of the old epoch is delivered");
    require(group.leave());
    ::_exit(0);
  }

  void start(const std::string& address) {
    require(::write(pipe_[1], address.data(), address.size()) > 0, "the child reads");
  }
  void kill() { ::kill(pid_, SIGKILL); }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

}  // namespace

int main() {
  RankOne first(false);  // before this process has threads
  RankOne restarted(true);

  muster::ServerOptions server_options;
  server_options.grace = 100ms;
  auto server = require(muster::Server::start(server_options));
  auto store = example::connect(server);

  first.start(server.addresses().front());
  auto group = join(store, 0);
  require(group.send_obj(muster::Rank{1}, std::string("of the old epoch")));
  first.kill();
  const auto passed = group.barrier(5s);
  require(!passed && passed.error().code == muster::ErrorCode::rank_lost, "the loss is told");
  require(passed.error().ranks.at(0).rank == 1, "with the rank");
  require(passed.error().ranks.at(0).process.pid == static_cast<unsigned>(first.pid()),
          "and the process");

  restarted.start(server.addresses().front());
  muster::RegroupOptions same_size;
  same_size.new_size = 2;
  auto next = require(group.regroup(same_size, 10s));
  require(next.epoch() > group.epoch(), "epochs grow");
  require(next.send_obj(muster::Rank{1}, std::string("of the new epoch")));
  first.wait();
  require(restarted.wait() == 0, "the restarted rank saw only what is new");
  std::cout << "rank restarts: as promised\n";
  return 0;
}
