#include "runtime/shared/segment.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/shared_support.h"
#include "support/ranks.h"

// Files in shared memory: who sees what, and what remains of whom.

namespace muster::test {
namespace {

using runtime::NewFile;
using runtime::SharedSegment;

/// In a child process, which then ends as if it were killed: nothing of it is destroyed.
template <class Part>
void in_killed_process(Part part) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    part();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

TEST_CASE("a segment is zeros, and what one writes another reads") {
  const OwnFolder folder;
  auto mine = must(SharedSegment::create(folder.path(), "test", 100'000));
  CHECK(std::string(mine.data(), mine.size()) == std::string(100'000, '\0'));
  auto theirs = must(SharedSegment::open(folder.path(), mine.name(), 100'000));
  const auto read_only = must(
      SharedSegment::open(folder.path(), mine.name(), 100'000, SharedSegment::Access::read_only));
  std::memcpy(theirs.data() + 5000, "hello", 5);
  CHECK(std::string(mine.data() + 5000, 5) == "hello");
  CHECK(std::string(read_only.data() + 5000, 5) == "hello");
  struct stat found {};
  REQUIRE(::stat((folder.path() + "/" + mine.name()).c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
}

TEST_CASE("a segment's memory outlives its name, and its name goes with its creator") {
  const OwnFolder folder;
  SharedSegment theirs;
  std::string name;
  {
    auto mine = must(SharedSegment::create(folder.path(), "test", 64));
    name = mine.name();
    theirs = must(SharedSegment::open(folder.path(), name, 64));
    std::memcpy(mine.data(), "kept", 4);
    SharedSegment moved = std::move(mine);
    CHECK(entries_of(folder.path()).size() == 1);
    moved.unlink();
    moved.unlink();
    CHECK(entries_of(folder.path()).empty());
  }
  CHECK(std::string(theirs.data(), 4) == "kept");
  CHECK(must_fail(SharedSegment::open(folder.path(), name, 64)).code == ErrorCode::not_found);
  { const auto other = must(SharedSegment::create(folder.path(), "test", 64)); }
  CHECK(entries_of(folder.path()).empty());
}

TEST_CASE("a segment of no bytes has a name and no memory") {
  const OwnFolder folder;
  const auto mine = must(SharedSegment::create(folder.path(), "test", 0));
  CHECK(mine.data() == nullptr);
  CHECK(must(SharedSegment::open(folder.path(), mine.name(), 0)).size() == 0);
}

TEST_CASE("what is no segment of that size is not opened") {
  const OwnFolder folder;
  const auto mine = must(SharedSegment::create(folder.path(), "test", 64));
  CHECK(must_fail(SharedSegment::open(folder.path(), mine.name(), 65)).code ==
        ErrorCode::codec_failure);
  CHECK(must_fail(SharedSegment::open(folder.path(), "../" + mine.name(), 64)).code ==
        ErrorCode::invalid_argument);
  REQUIRE(::symlink(mine.name().c_str(), (folder.path() + "/link").c_str()) == 0);
  CHECK_FALSE(SharedSegment::open(folder.path(), "link", 64));
  REQUIRE(::mkfifo((folder.path() + "/fifo").c_str(), 0600) == 0);
  CHECK(must_fail(SharedSegment::open(folder.path(), "fifo", 0)).code == ErrorCode::codec_failure);
  CHECK(must_fail(SharedSegment::create(folder.path() + "/none", "test", 1)).code ==
        ErrorCode::invalid_argument);
}

TEST_CASE("a file that is written is mapped with what it has") {
  const OwnFolder folder;
  auto file = must(NewFile::create(folder.path(), "test"));
  must(file.append("abc", 3));
  must(file.append("defg", 4));
  must(file.write_at(0, "A", 1));
  const auto mine = must(SharedSegment::map(std::move(file)));
  CHECK(std::string(mine.data(), mine.size()) == "Abcdefg");
}

TEST_CASE("a sweep removes what a killed process left, and nothing of one that lives") {
  const OwnFolder folder;
  in_killed_process([&] {
    static_cast<void>(SharedSegment::create(folder.path(), "test", 4096));
    new SharedSegment(must(SharedSegment::create(folder.path(), "test", 4096)));
    new NewFile(must(NewFile::create(folder.path(), "other")));
  });
  CHECK(entries_of(folder.path()).size() == 2);
  const auto live = must(SharedSegment::create(folder.path(), "test", 64));
  CHECK(entries_of(folder.path()) == std::set<std::string>{live.name()});
  CHECK(runtime::sweep(folder.path()) == 0);
}

TEST_CASE("a sweep passes over names of others, of other hosts, and over what is no file") {
  const OwnFolder folder;
  const std::string other_host = "muster-test-" + std::string(32, '0');
  in_killed_process([&] {
    auto* const file = new NewFile(must(NewFile::create(folder.path(), "test")));
    std::string fifo = file->path();
    fifo.back() = fifo.back() == '0' ? '1' : '0';
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  });
  for (const std::string& name : {other_host, std::string("muster-x"), std::string("other")})
    std::ofstream(folder.path() + "/" + name) << "kept";
  CHECK(runtime::sweep(folder.path()) == 1);
  CHECK(entries_of(folder.path()).size() == 4);
  CHECK(runtime::sweep(folder.path() + "/none") == 0);
}

TEST_CASE("who creates while others sweep keeps its file") {
  const OwnFolder folder;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> sweepers;
  for (int index = 0; index < 2; ++index) {
    sweepers.emplace_back([&] {
      while (!is_over) runtime::sweep(folder.path());
    });
  }
  int missing = 0;
  for (int count = 0; count < 2000; ++count) {
    const auto file = must(NewFile::create(folder.path(), "test"));
    if (::access(file.path().c_str(), F_OK) != 0) ++missing;
  }
  is_over = true;
  for (std::thread& sweeper : sweepers) sweeper.join();
  CHECK(missing == 0);
  CHECK(entries_of(folder.path()).empty());
}

TEST_CASE("a forked child takes no name of its parent away") {
  const OwnFolder folder;
  auto mine = must(SharedSegment::create(folder.path(), "test", 64));
  const pid_t child = ::fork();
  if (child == 0) {
    mine = SharedSegment();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(entries_of(folder.path()).size() == 1);
}

}  // namespace
}  // namespace muster::test
