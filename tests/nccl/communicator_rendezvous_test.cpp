#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "communicator/preflight.h"
#include "muster/codec.h"
#include "nccl/communicator_machine.h"
#include "nccl/functions.h"
#include "nccl/ids/bootstrap_socket.h"
#include "nccl/preflight.h"

// How `create` gets its ranks together in NCCL: what becomes of ids and their sockets, of strangers
// who come there, and of ranks that NCCL would wait for without end.

namespace muster::test {
namespace {

/// A machine on which it is seen which ids NCCL makes and is given.
class Rendezvous : public Machine {
 public:
  Rendezvous() : own_(must(nccl_internal::load_nccl(std::getenv("NCCL_DOUBLE")))), table_(own_) {
    watching() = this;
    table_.get_unique_id = [](nccl::UniqueId* id) { return watching()->make(id); };
    table_.comm_init_rank_config = [](nccl::Handle* handle, int world_size, nccl::UniqueId id,
                                      int rank, nccl::Config* config) {
      watching()->see(id);
      return watching()->own_.comm_init_rank_config(handle, world_size, id, rank, config);
    };
  }
  ~Rendezvous() { watching() = nullptr; }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

 protected:
  nccl::Options seen(Duration timeout = 20s) const {
    nccl::Options options = doubled(timeout);
    options.nccl = &table_;
    return options;
  }

  /// What follows when NCCL has made an id, before anybody else has it.
  std::function<void(const nccl::UniqueId& id)> when_made_;
  /// What follows when a rank enters NCCL with it.
  std::function<void(const nccl::UniqueId& id)> when_used_;
  std::map<nccl::UniqueId, int> uses_;  ///< so many ranks have entered NCCL with each

 private:
  static Rendezvous*& watching() {
    static Rendezvous* one = nullptr;
    return one;
  }
  int make(nccl::UniqueId* id) const {
    const int result = own_.get_unique_id(id);
    if (when_made_) when_made_(*id);
    return result;
  }
  void see(const nccl::UniqueId& id) {
    const std::lock_guard lock(mutex_);
    ++uses_[id];
    if (when_used_) when_used_(id);
  }

  const nccl::Functions own_;
  nccl::Functions table_;
  std::mutex mutex_;
};

/// Where NCCL waits for the ranks of an id.
sockaddr_in address_of(const nccl::UniqueId& id) {
  sockaddr_in address;
  std::memcpy(&address, id.data() + 8, sizeof address);
  return address;
}

/// A port where nobody listens, and that the system gives to nobody else.
class ClosedPort {
 public:
  explicit ClosedPort(const sockaddr_in& address)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    REQUIRE(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~ClosedPort() { ::close(socket_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;

 private:
  int socket_;
};

/// A connection to where NCCL waits for the ranks of an id, of somebody who is none.
class Stranger {
 public:
  explicit Stranger(const nccl::UniqueId& id)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = address_of(id);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(const std::string& bytes) const {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
  }

 private:
  int socket_;
};

/// What ranks that are threads get in a group of their own.
void check_all_fail(const nccl::Options& options, const std::function<void(const Error&)>& check) {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    check(must_fail(nccl::create(group, rank, options)));
    must(group.barrier());
    must(nccl::create(group, rank, doubled()));  // the group has lost nothing
    must(group.barrier());
  });
}

TEST_CASE_FIXTURE(
    Rendezvous,
    "a rank with another's number, or of another world, is named; NCCL is not entered") {
  auto server = start_server();
  for (const bool has_other_number : {true, false}) {
    run_ranks(3, [&](int rank) {
      auto store = connect(server);
      auto group = join(store, has_other_number ? "number" : "world", rank, 3);
      if (rank == 2) {
        nccl_internal::PreflightReport forged;
        forged.rank = has_other_number ? 1 : 2;
        forged.members = communicator::digest_of_epoch(group) + (has_other_number ? 0 : 1);
        must(group.all_gather_bytes(nccl_internal::encode(forged), codec_id::nccl_communicator));
      } else {
        const Error error = must_fail(nccl::create(group, rank, seen()));
        CHECK(error.code == ErrorCode::mismatch);
        CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
        CHECK(error.detail.find("another rank or other members") != std::string::npos);
      }
      must(group.barrier());
    });
  }
  CHECK(uses_.empty());
  CHECK(nccl().waiting() == 0);
  CHECK(nccl::failed_attempts() == 0);
}

TEST_CASE_FIXTURE(Rendezvous, "each attempt has an id of its own; one that failed waits no more") {
  auto server = start_server();
  REQUIRE(nccl().fault("init:result=2*2") == 0);
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    CHECK(must_fail(nccl::create(group, rank, seen())).code == ErrorCode::nccl);
    await([] { return nccl().waiting() == 0; });
    must(group.barrier());
    auto first = must(nccl::create(group, rank, seen()));
    auto second = must(nccl::create(group, rank, seen()));
    must(group.barrier());
  });
  CHECK(uses_.size() == 3);
  for (const auto& [id, count] : uses_) CHECK(count == 2);
}

TEST_CASE_FIXTURE(Rendezvous, "children inherit no socket at which NCCL waits for its ranks") {
  std::atomic<int> kept_count{0};
  when_used_ = [&](const nccl::UniqueId& id) {
    const auto socket = nccl_internal::find_bootstrap_socket(id);
    if (socket && (::fcntl(*socket, F_GETFD) & FD_CLOEXEC) != 0) ++kept_count;
  };
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  must(nccl::create(group, 0, seen()));
  CHECK(kept_count == 1);
}

TEST_CASE_FIXTURE(Rendezvous, "a stranger who says something else to NCCL's socket does no harm") {
  when_made_ = [](const nccl::UniqueId& id) { Stranger(id).say("GET / HTTP/1.1"); };
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    must(nccl::create(group, rank, seen()));
    must(group.barrier());
  });
}

TEST_CASE_FIXTURE(Rendezvous, "a stranger who says nothing holds all up until the deadline") {
  std::optional<Stranger> silent;
  when_made_ = [&](const nccl::UniqueId& id) { silent.emplace(id); };
  check_all_fail(seen(1500ms), [](const Error& error) {
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 1}});
    CHECK(error.elapsed < 15s);
  });
  CHECK(holds_soon([] { return nccl().waiting() == 1; }));  // for the stranger
}

TEST_CASE_FIXTURE(Rendezvous, "a remote error without a loss is told as NCCL's own, by all") {
  ::setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
  ::setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
  std::optional<ClosedPort> port;
  when_made_ = [&port](const nccl::UniqueId& id) {
    Stranger(id).say(std::string(id.data(), 8) + "half a message");
    await([] { return nccl().waiting() == 0; });  // it has ended what waits for the ranks
    port.emplace(address_of(id));
  };
  check_all_fail(seen(), [](const Error& error) {
    CHECK(error.code == ErrorCode::nccl);
    CHECK(error.actual == 6);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 1}});
    CHECK(error.detail.find("retries exhausted") != std::string::npos);
    CHECK(error.elapsed < 15s);
  });
  ::unsetenv("NCCL_SOCKET_RETRY_CNT");
  ::unsetenv("NCCL_SOCKET_RETRY_SLEEP_MSEC");
}

TEST_CASE_FIXTURE(Machine, "a device that only NCCL finds to be shared is told in its words") {
  static std::atomic<unsigned char> uuid{0};
  nccl::CudaFunctions driver = must(nccl_internal::load_cuda(std::getenv("CUDA_DOUBLE")));
  driver.device_get_uuid = [](unsigned char* to, int) {
    *to = ++uuid;
    return 0;
  };
  nccl::Options options = doubled();
  options.cuda = &driver;
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    const Error error = must_fail(nccl::create(group, 0, options));
    CHECK(error.code == ErrorCode::nccl);
    CHECK(error.actual == 5);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 1}});
    CHECK(error.detail.find("Duplicate GPU detected") != std::string::npos);
    must(group.barrier());
  });
}

}  // namespace
}  // namespace muster::test
