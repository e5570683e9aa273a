#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

TEST_SUITE_BEGIN("nccl_doubles_init");

namespace muster::test {
namespace {

using Id = NcclDouble::UniqueId;

sockaddr_in address_in(const Id& id) {
  sockaddr_in address{};
  std::memcpy(&address, id.internal.data() + 8, sizeof address);
  return address;
}

/// The id's listening socket in this process; -1: there is none.
int listener_of(const Id& id) {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    int is_listening = 0;
    size = sizeof is_listening;
    ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size);
    if (is_listening != 0 && address.sin_port == address_in(id).sin_port) return descriptor;
  }
  return -1;
}

void give_up(const Id& id) {
  const int listener = listener_of(id);
  if (listener >= 0) ::shutdown(listener, SHUT_RDWR);
}

/// A connection to the root that is none of NCCL's.
class Stranger {
 public:
  explicit Stranger(const Id& id) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = address_in(id);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Stranger() { leave(); }
  void say(const std::string& bytes) const {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
  }
  void leave() { ::close(std::exchange(socket_, -1)); }

 private:
  int socket_;
};

/// Few retries, while it lives.
struct Impatience {
  Impatience() {
    ::setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
    ::setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "10", 1);
  }
  ~Impatience() {
    ::unsetenv("NCCL_SOCKET_RETRY_CNT");
    ::unsetenv("NCCL_SOCKET_RETRY_SLEEP_MSEC");
  }
};

TEST_CASE("an id has a thread and a socket, which go when the socket is shut down") {
  const CleanDoubles clean;
  const Id id = new_id();
  CHECK(nccl().waiting() == 1);
  CHECK(nccl().count("threads") == 1);
  CHECK(nccl().count("descriptors") == 1);
  CHECK(::fcntl(listener_of(id), F_GETFD) == 0);
  for (std::size_t i = 8 + sizeof(sockaddr_in); i < id.internal.size(); ++i) {
    REQUIRE(id.internal[i] == 0);
  }
  const Id other = new_id();
  CHECK(other.internal != id.internal);
  give_up(id);
  await([] { return nccl().waiting() == 1; });
  CHECK(listener_of(id) == -1);
  give_up(other);
}

TEST_CASE("with NCCL_COMM_ID every id is the same, and nobody listens") {
  const CleanDoubles clean;
  ::setenv("NCCL_COMM_ID", "127.0.0.1", 1);
  const Id id = new_id();
  CHECK(id.internal == new_id().internal);
  CHECK(address_in(id).sin_port == 65535);
  CHECK(id.internal[1] == static_cast<char>(0x80));
  ::setenv("NCCL_COMM_ID", "no address", 1);
  Id none{};
  CHECK(nccl().unique_id(&none) == 4);
  ::unsetenv("NCCL_COMM_ID");
}

TEST_CASE("all ranks become ready, and are who they are") {
  const CleanDoubles clean;
  World world(3);
  world.start();
  for (int rank = 0; rank < 3; ++rank) {
    int number = -1;
    CHECK(nccl().rank(world[rank], &number) == 0);
    CHECK(number == rank);
    CHECK(nccl().device(world[rank], &number) == 0);
    CHECK(number == rank);
    CHECK(nccl().rank_count(world[rank], &number) == 0);
    CHECK(number == 3);
  }
  await([] { return nccl().waiting() == 0; });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(nccl().finalize(world[rank]) == 7);
    CHECK(world.settled(rank) == 0);
    CHECK(world.destroy(rank) == 0);
  }
  CHECK(nccl().count("communicators") == 0);
}

TEST_CASE("a blocking init returns when all have come, or with 3 when another thread aborts") {
  const CleanDoubles clean;
  const Id id = new_id();
  std::vector<void*> communicators(2);
  const auto come = [&](int rank) {
    const CurrentDevice current(rank);
    return nccl().init_blocking(&communicators[static_cast<std::size_t>(rank)], 2, id, rank);
  };
  auto other = std::async(std::launch::async, come, 1);
  CHECK(come(0) == 0);
  CHECK(other.get() == 0);
  for (void* const communicator : communicators) CHECK(nccl().destroy(communicator) == 0);

  const Id alone = new_id();
  std::atomic<void*> handle{nullptr};
  auto waiting = std::async(std::launch::async, [&] {
    void* own = nullptr;
    const CurrentDevice current(0);
    nccl().fault("init:delay=1");
    auto poll = std::async(std::launch::async, [&] {
      await([&] { return std::atomic_ref(own).load() != nullptr; });
      handle = std::atomic_ref(own).load();
    });
    return nccl().init_blocking(&own, 2, alone, 0);
  });
  await([&] { return handle != nullptr; });
  CHECK(nccl().abort(handle) == 0);
  CHECK(waiting.get() == 3);
  give_up(alone);
}

TEST_CASE("a missing rank is waited for without a word; abort ends it, and the id is burnt") {
  const CleanDoubles clean;
  const Impatience impatience;
  const Id id = new_id();
  World world(3, id);
  CHECK(world.add(0) == 7);
  CHECK(world.add(2) == 7);
  REQUIRE(world[0] != nullptr);
  world.check_that_nothing_comes();
  CHECK(nccl().waiting() == 1);
  int number = 0;
  CHECK(nccl().rank_count(world[0], &number) == 4);
  CHECK(nccl().destroy(world[0]) == 4);
  void* const gone = world[0];
  CHECK(world.abort(0) == 0);
  CHECK(world.abort(1) == 0);
  CHECK(nccl().async_error(gone, &number) == 4);
  CHECK(nccl().abort(gone) == 4);
  give_up(id);
  await([] { return nccl().waiting() == 0; });
  World again(1, id);
  CHECK(again.add(0) == 7);
  CHECK(again.settled(0) == 6);
}

TEST_CASE("a rank that comes late is served") {
  const CleanDoubles clean;
  World world(2);
  CHECK(world.add(1) == 7);
  world.check_that_nothing_comes();
  CHECK(world.add(0) == 7);
  CHECK(world.settled(0) == 0);
  CHECK(world.settled(1) == 0);
}

TEST_CASE("two ranks of one number, or of different counts, end the root, and nobody hears") {
  const CleanDoubles clean;
  for (const int second_count : {3, 2}) {
    World world(3);
    CHECK(world.add(0, 0, 3) == 7);
    CHECK(world.add(second_count == 3 ? 0 : 1, 1, second_count) == 7);
    await([] { return nccl().waiting() == 0; });
    CHECK(std::string(nccl().last_error(nullptr)).find("bootstrapRoot") == 0);
    world.check_that_nothing_comes();
  }
}

TEST_CASE("who does not know the magic is dropped, and who says nothing blocks the root") {
  const CleanDoubles clean;
  const Id id = new_id();
  const Stranger wrong(id);
  wrong.say("GET / HTTP/1.1");
  Stranger silent(id);
  World world(1, id);
  CHECK(world.add(0) == 7);
  world.check_that_nothing_comes();
  silent.leave();
  CHECK(world.settled(0) == 0);
}

TEST_CASE("who goes away within its message ends the root") {
  const CleanDoubles clean;
  const Id id = new_id();
  Stranger half(id);
  half.say(std::string(id.internal.data(), 8) + "half a message");
  half.leave();
  await([] { return nccl().waiting() == 0; });
}

TEST_CASE("an id serves once, and a root that is gone is an error after the retries") {
  const CleanDoubles clean;
  const Impatience impatience;
  const Id id = new_id();
  World first(2, id);
  first.start();
  World second(2, id);
  CHECK(second.add(0) == 7);
  CHECK(second.settled(0) == 6);
  CHECK(std::string(nccl().last_error(nullptr)).find("retries") != std::string::npos);
  int number = 0;
  CHECK(nccl().rank_count(second[0], &number) == 6);
}

TEST_CASE("two ranks with one device on one host are an invalid usage for all") {
  const CleanDoubles clean;
  World world(3);
  CHECK(world.add(0, 0, 3) == 7);
  CHECK(world.add(1, 1, 3) == 7);
  CHECK(world.add(2, 0, 3) == 7);
  for (int rank = 0; rank < 3; ++rank) CHECK(world.settled(rank) == 5);
  CHECK(std::string(nccl().last_error(nullptr)).find("Duplicate GPU") == 0);
}

TEST_CASE("the abort of an init that came to nothing leaks, if it is not told otherwise") {
  const CleanDoubles clean;
  nccl().set_leaks(1);
  const Id id = new_id();
  {
    World world(2, id);
    CHECK(world.add(0) == 7);
    const long before = nccl().count("leaked_descriptors");
    CHECK(world.abort(0) == 0);
    CHECK(nccl().count("leaked_descriptors") == before + 3);
    CHECK(nccl().count("leaked_threads") > 0);
  }
  give_up(id);
}

TEST_CASE("without a device init gives 1, and leaves the group open that it began") {
  const CleanDoubles clean;
  cuda().reset();
  cuda().set_devices(0);
  const auto config = nonblocking_config();
  int untouched = 0;
  void* communicator = &untouched;
  CHECK(nccl().group_end() == 5);
  CHECK(nccl().init(&communicator, 2, Id{}, 7, &config) == 1);
  CHECK(nccl().init(&communicator, 2, Id{}, 0, &config) == 1);
  CHECK(nccl().init_blocking(&communicator, 2, Id{}, 0) == 1);
  CHECK(communicator == &untouched);
  CHECK(std::string(nccl().last_error(nullptr)).find("Cuda failure") == 0);
  CHECK(nccl().group_end() == 0);
  CHECK(nccl().group_end() == 0);
  CHECK(nccl().group_end() == 5);
  cuda().reset();
}

TEST_CASE("wrong arguments are refused, and null handles are as in NCCL") {
  const CleanDoubles clean;
  const CurrentDevice current(0);
  auto config = nonblocking_config();
  void* communicator = nullptr;
  CHECK(nccl().init(&communicator, 2, Id{}, 2, &config) == 4);
  CHECK(nccl().init(nullptr, 2, Id{}, 0, &config) == 4);
  config.blocking = 2;
  CHECK(nccl().init(&communicator, 2, Id{}, 0, &config) == 4);
  config.magic = 0;
  CHECK(nccl().init(&communicator, 2, Id{}, 0, &config) == 4);
  CHECK(communicator == nullptr);
  CHECK(nccl().abort(nullptr) == 0);
  CHECK(nccl().destroy(nullptr) == 0);
  CHECK(nccl().finalize(nullptr) == 0);
  int number = 0;
  CHECK(nccl().async_error(nullptr, &number) == 4);
  CHECK(nccl().version(&number) == 0);
  CHECK(number == 22809);
  CHECK(std::string(nccl().error_string(0)) == "no error");
}

TEST_CASE("faults come in the phase that they name") {
  const CleanDoubles clean;
  CHECK(nccl().fault("nowhere:block=1") == -1);
  CHECK(nccl().fault("init:sideways") == -1);
  for (const char* const phase : {"check_in", "ring", "connect", "ready"}) {
    CAPTURE(phase);
    REQUIRE(nccl().fault((std::string(phase) + ":result=3@1*1").c_str()) == 0);
    World world(2);
    CHECK(world.add(0) == 7);
    CHECK(world.add(1) == 7);
    CHECK(world.settled(1) == 3);
  }
  REQUIRE(nccl().fault("connect:forever@0*1") == 0);
  {
    World world(2);
    CHECK(world.add(0) == 7);
    CHECK(world.add(1) == 7);
    world.check_that_nothing_comes();
  }
  REQUIRE(nccl().fault("get_unique_id:result=2+1*1") == 0);
  give_up(new_id());
  Id id{};
  CHECK(nccl().unique_id(&id) == 2);
  REQUIRE(nccl().fault("init:result=2*1") == 0);
  World world(1);
  CHECK(world.add(0) == 2);
  CHECK(world[0] == nullptr);
  CHECK(world.add(0) == 7);
  CHECK(world.settled(1) == 0);
  REQUIRE(nccl().fault("finalize:forever") == 0);
  CHECK(nccl().finalize(world[1]) == 7);
  let_pass(50ms);
  CHECK(async_error(world[1]) == 7);
}

TEST_CASE("a call that hangs goes on when the faults are cleared") {
  const CleanDoubles clean;
  REQUIRE(nccl().fault("abort:hang") == 0);
  World world(1);
  world.start();
  auto aborting = std::async(std::launch::async, [&] { return world.abort(0); });
  CHECK(aborting.wait_for(50ms) == std::future_status::timeout);
  nccl().clear_faults();
  CHECK(aborting.get() == 0);
}

}  // namespace
}  // namespace muster::test
