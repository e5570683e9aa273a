#include "muster/file_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/files.h"
#include "support/ranks.h"

// Locks by files: who has one, who does not, and what is left of one that has died.

namespace muster::test {
namespace {

FileLockOptions lock_within(Duration timeout) {
  FileLockOptions options;
  options.timeout = timeout;
  return options;
}

TEST_CASE("M8: of many processes only one has the lock at a time") {
  const TestFolder folder;
  const std::string counter = folder.file("counter");
  write_file(counter, "0");
  std::vector<std::unique_ptr<Process>> processes;
  for (int count = 0; count < 4; ++count)
    processes.push_back(start_file_process({"counts", folder.file("lock"), counter, "25"}));
  for (const auto& process : processes) CHECK(process->wait().exit_code == 0);
  int number = 0;
  std::ifstream(counter) >> number;
  CHECK(number == 100);
  CHECK(folder.names() == std::set<std::string>{"counter"});
}

TEST_CASE("of many handles of one process only one has the lock at a time") {
  const TestFolder folder;
  std::atomic<int> inside = 0;
  int count = 0;
  run_ranks(4, [&](int) {
    for (int time = 0; time < 25; ++time) {
      const auto lock = must(FileLock::acquire(folder.file("lock"), lock_within(20s)));
      CHECK(++inside == 1);
      ++count;
      --inside;
    }
  });
  CHECK(count == 100);
  CHECK(folder.names().empty());
}

TEST_CASE("who takes a lock again and again while others release it has one whose file is there") {
  const TestFolder folder;
  std::atomic<int> inside = 0;
  std::atomic<int> count = 0;
  run_ranks(4, [&](int) {
    while (count < 2000) {
      auto lock = FileLock::acquire(folder.file("lock"));
      if (!lock) continue;
      CHECK(++inside == 1);
      ++count;
      --inside;
      must(lock->release());
    }
  });
  CHECK(folder.names().empty());
}

TEST_CASE("M8: one that could not acquire the lock does not remove it, and learns who holds it") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto holder = start_file_process({"holds", path});
  CHECK(holder->read_line() == "held");
  const auto pid = static_cast<std::uint32_t>(holder->pid());

  const Error refused = must_fail(FileLock::acquire(path));
  CHECK(refused.code == ErrorCode::busy);
  CHECK(refused.detail.find("pid " + std::to_string(pid)) != std::string::npos);
  CHECK(refused.detail.find("(holder)") != std::string::npos);
  const Error late = must_fail(FileLock::acquire(path, lock_within(30ms)));
  CHECK(late.code == ErrorCode::timed_out);
  CHECK(late.detail.find("pid " + std::to_string(pid)) != std::string::npos);

  const auto owner = must(FileLock::owner_of(path));
  REQUIRE(owner);
  CHECK(owner->pid == pid);
  CHECK(owner->label == "holder");
  CHECK_FALSE(owner->host.empty());
  CHECK(std::chrono::system_clock::now() - owner->since < 1min);

  holder->send_signal(SIGUSR1);
  CHECK(holder->wait().exit_code == 0);
  CHECK(folder.names().empty());
  CHECK_FALSE(must(FileLock::owner_of(path)));
}

TEST_CASE("M8: the lock of an owner that was killed is taken over at once, and says whose it was") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto holder = start_file_process({"holds", path});
  CHECK(holder->read_line() == "held");
  const auto pid = static_cast<std::uint32_t>(holder->pid());
  holder->send_signal(SIGKILL);
  CHECK(holder->wait().signal == SIGKILL);
  CHECK(folder.names().size() == 1);

  std::string logged;
  FileLockOptions options;
  options.logger = [&](LogLevel, std::string_view line) { logged = line; };
  const auto lock = must(FileLock::acquire(path, options));
  REQUIRE(lock.taken_over_from());
  CHECK(lock.taken_over_from()->pid == pid);
  CHECK(lock.taken_over_from()->label == "holder");
  CHECK(logged.find(std::to_string(pid)) != std::string::npos);
  CHECK(must(FileLock::owner_of(path))->pid == static_cast<std::uint32_t>(::getpid()));
}

TEST_CASE("who waits for a lock has it when its owner releases it") {
  const TestFolder folder;
  auto first = must(FileLock::acquire(folder.file("lock")));
  CHECK_FALSE(first.taken_over_from());
  std::thread waiter([&] {
    const auto second = must(FileLock::acquire(folder.file("lock"), lock_within(20s)));
    CHECK_FALSE(second.taken_over_from());
  });
  must(first.release());
  CHECK_FALSE(first.is_held());
  must(first.release());
  waiter.join();
  CHECK(folder.names().empty());
}

TEST_CASE("a lock moves, and is released by the handle that has it") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto lock = must(FileLock::acquire(path));
  std::optional<FileLock> other(std::move(lock));
  CHECK(other->is_held());
  CHECK(other->path() == path);
  must(lock.release());
  CHECK(must_fail(FileLock::acquire(path)).code == ErrorCode::busy);
  other = must(FileLock::acquire(folder.file("another")));
  CHECK(folder.names() == std::set<std::string>{"another"});
  other.reset();
  CHECK(folder.names().empty());
}

TEST_CASE("a forked child neither holds nor releases its parent's lock") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto lock = must(FileLock::acquire(path));
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool is_held = lock.is_held();
    const bool is_refused = !lock.release();
    ::_exit(!is_held && is_refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(must_fail(FileLock::acquire(path)).code == ErrorCode::busy);
  must(lock.release());
  CHECK(folder.names().empty());
}

TEST_CASE("a lock whose parent releases it is free, although a forked child has its descriptor") {
  const TestFolder folder;
  auto lock = must(FileLock::acquire(folder.file("lock")));
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (;;) ::pause();
  }
  must(lock.release());
  CHECK(FileLock::acquire(folder.file("lock")).has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("paths that can be no lock are refused, and stay as they are") {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("folder"));
  write_file(folder.file("target"), "text");
  REQUIRE(::symlink("target", folder.file("link").c_str()) == 0);
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  for (const char* const name : {"folder", "link", "pipe", "none/lock"}) {
    CAPTURE(name);
    const Error error = must_fail(FileLock::acquire(folder.file(name), lock_within(20s)));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.operation == "FileLock::acquire");
    CHECK(error.where == folder.file(name));
  }
  CHECK(must_fail(FileLock::acquire("")).code == ErrorCode::invalid_argument);
  CHECK(must_fail(FileLock::owner_of(folder.file("folder"))).code == ErrorCode::invalid_argument);
  CHECK(folder.names() == std::set<std::string>{"folder", "link", "pipe", "target"});
}

TEST_CASE("a folder in which nothing may be written is an error that says so") {
  if (::geteuid() == 0) return;  // who may write everywhere
  const TestFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  CHECK(must_fail(FileLock::acquire(folder.file("lock"))).code == ErrorCode::permission_denied);
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
}

TEST_CASE("the release of a lock whose file somebody has removed leaves the new owner's alone") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto first = must(FileLock::acquire(path));
  REQUIRE(::unlink(path.c_str()) == 0);
  const auto second = must(FileLock::acquire(path));
  CHECK(must_fail(first.release()).code == ErrorCode::not_found);
  CHECK(must_fail(FileLock::acquire(path)).code == ErrorCode::busy);
}

TEST_CASE("a lock is released in its folder, wherever the path of that leads by then") {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("own"));
  auto lock = must(FileLock::acquire(folder.file("own/lock")));
  std::filesystem::rename(folder.file("own"), folder.file("moved"));
  std::filesystem::create_directory(folder.file("other"));
  write_file(folder.file("other/lock"), "4711\n");
  std::filesystem::create_symlink(folder.file("other"), folder.file("own"));
  must(lock.release());
  CHECK(std::filesystem::is_empty(folder.file("moved")));
  CHECK(std::filesystem::exists(folder.file("other/lock")));
}

TEST_CASE("a file of a lock that tells nothing of its owner is taken over from somebody unknown") {
  const TestFolder folder;
  for (const char* const content : {"muster lock 1\n4711\n", "muster lo", "muster lock 1\n"}) {
    CAPTURE(content);
    write_file(folder.file("lock"), content);
    const auto lock = must(FileLock::acquire(folder.file("lock")));
    if (lock.taken_over_from()) CHECK(lock.taken_over_from()->pid == 0);
  }
}

TEST_CASE("a file that was no lock's is refused, and stays as it is") {
  const TestFolder folder;
  const std::string path = folder.file("data");
  for (const char* const content : {"4711\n", "muster lock 2\n", "a checkpoint"}) {
    CAPTURE(content);
    write_file(path, content);
    CHECK(must_fail(FileLock::acquire(path)).code == ErrorCode::invalid_argument);
    std::ifstream in(path);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == content);
  }
}

TEST_CASE("the longest timeout there is waits, and does not end at once") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  auto first = must(FileLock::acquire(path));
  std::thread waits(
      [&] { CHECK(FileLock::acquire(path, lock_within(Duration::max())).has_value()); });
  std::this_thread::yield();
  must(first.release());
  waits.join();
}

}  // namespace
}  // namespace muster::test
