#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/failure.h"
#include "base/host_pid.h"
#include "base/without_signals.h"
#include "client/interruption.h"
#include "muster/log.h"
#include "runtime/signal/signal_call.h"

// Who works first writes a whole new file each time, beside the old one, locks it, and renames it:
// so whoever opens the file finds it complete, and locked as long as its writer lives. How the work
// has ended is the last thing that is written. From then on only the readers' marks change, which
// they write into that very file.

namespace muster::runtime {

namespace {

constexpr std::size_t text_bytes_in_place_max = 1024;

/// Makes the bytes visible to other hosts, as a close does on NFS, where the file stays open.
void flush(const base::FileHandle& file) {
  const base::FileHandle same(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
}

/// Whether a process that is gone has left it, before or while it wrote a signal.
bool is_unfinished_signal(const FileOpened& file) {
  if (!file.handle || holder_of(file.handle) == EAGAIN) return false;
  const auto bytes = content_of(file.handle, signal_bytes_max).value_or(std::string());
  return bytes.empty() || begins_as_signal(bytes);
}

FileOpened make_new(const FilePlace& place) {
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL;
  FileOpened made = place.open(flags);
  if (made.code != EEXIST) return made;
  const FileOpened there = place.open(O_RDONLY);
  if (!is_unfinished_signal(there)) return made;
  place.remove(there.handle);
  return place.open(flags);
}

}  // namespace

LeaderFile::LeaderFile(SignalCall call)
    : call_(std::move(call)), place_(FilePlace::of(call_.path)), record_(call_.named) {
  record_.world_rank = call_.ranks.world_rank;
  record_.pid = base::host_pid();
  record_.host = own_host_name();
  record_.readers.assign(static_cast<std::size_t>(call_.ranks.count), unread_mark);
  record_.readers[0] = read_mark;
}

LeaderFile::~LeaderFile() {
  if (!file_ || process_.is_forked()) return;
  place_.remove(file_);
  unlock(file_);
}

Result<void> LeaderFile::begin() {
  const FileOpened there = open_regular(call_.path, O_RDONLY);
  if (there.handle && holder_of(there.handle) == EAGAIN) {
    const auto record =
        decode_signal(content_of(there.handle, signal_bytes_max).value_or(std::string()));
    return call_.error(ErrorCode::busy,
                       "its file is in use by pid " + std::to_string(record ? record->pid : 0) +
                           " on " + printable(record ? record->host : "an unknown host") +
                           ": one process of a job has local rank 0 on a node, and uses one "
                           "SignalFolder at a time");
  }
  return write();
}

Result<void> LeaderFile::tell(std::uint64_t told_count, std::string_view text) {
  record_.told_count = told_count;
  record_.text = text;
  return write();
}

Result<void> LeaderFile::end(const detail::TurnOutcome& outcome) {
  record_.phase = outcome.failure ? SignalRecord::Phase::failed : SignalRecord::Phase::done;
  record_.text = outcome.failure.value_or(std::string());
  auto written = write();
  if (written || !file_) return written;
  // The disk may be full, perhaps by the work. The file that is there has its place: whoever reads
  // it in between finds it incomplete, and reads it again.
  record_.text.resize(std::min(record_.text.size(), text_bytes_in_place_max));
  const std::string bytes = encode(record_);
  if (write_at(file_, bytes, 0) != 0) return written;
  if (::ftruncate(file_.get(), static_cast<::off_t>(bytes.size())) != 0) return written;
  flush(file_);
  return {};
}

Result<void> LeaderFile::write() {
  const std::string path = call_.path + ".new";
  const FilePlace fresh = FilePlace::of(path);
  FileOpened made = make_new(fresh);
  const auto failed = [&](std::string_view what, int code) -> Result<void> {
    fresh.remove(made.handle);
    return file_error(call_.operation, path, what, code);
  };
  if (!made.handle)
    return file_error(call_.operation, path, "the signal file cannot be made", made.code);
  record_.is_locked = lock(made.handle) == 0;
  if (const int code = write_at(made.handle, encode(record_), 0); code != 0)
    return failed("the signal file cannot be written", code);
  flush(made.handle);
  if (::renameat(fresh.folder.get(), fresh.name.c_str(), fresh.folder.get(), place_.name.c_str()) !=
      0)
    return failed("the signal file cannot be renamed", errno);
  if (!place_.names(made.handle)) {
    return call_.error(ErrorCode::busy,
                       "its file was replaced by another process: one process of a job has local "
                       "rank 0 on a node");
  }
  // The lock of the old file ends here, when that file has no name any more.
  file_ = std::move(made.handle);
  return {};
}

std::vector<int> LeaderFile::missing() const {
  // Opened anew: so other hosts' marks are seen on NFS.
  const FileOpened there = open_regular(call_.path, O_RDONLY);
  if (!there.handle || identity_of(there.handle) != identity_of(file_)) return {};
  const auto record =
      decode_signal(content_of(there.handle, signal_bytes_max).value_or(std::string()));
  return record ? unread_ranks(*record) : std::vector<int>();
}

std::vector<int> LeaderFile::await_readers() const {
  const auto until = SignalCall::Clock::now() + call_.options.arrival_max;
  client::Interruption interruption;
  for (std::chrono::milliseconds pause(2);; pause = std::min(2 * pause, decltype(pause)(20))) {
    std::vector<int> ranks = missing();
    const auto left = until - SignalCall::Clock::now();
    if (ranks.empty() || left <= left.zero() || interruption.is_there()) return ranks;
    std::this_thread::sleep_for(std::min<SignalCall::Clock::duration>(pause, left));
  }
}

void FileProgress::tell(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  ++told_count_;
  text_ = text;
  changed_.notify_all();
  if (writer_.joinable()) return;
  const base::WithoutSignals blocked;
  try {
    writer_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // The next call tries again.
  }
}

void FileProgress::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  if (!writer_.joinable()) return;
  if (process_.is_forked()) {
    writer_.detach();  // it is the parent's
  } else {
    writer_.join();
  }
}

void FileProgress::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_over_ || told_count_ != written_count_; });
    if (is_over_) return;
    written_count_ = told_count_;
    const std::string text = text_;
    lock.unlock();
    // What cannot be written now may be later; else those who wait end as after silence.
    static_cast<void>(file_.tell(written_count_, text));
    lock.lock();
    changed_.wait_for(lock, pause_, [&] { return is_over_; });
  }
}

}  // namespace muster::runtime
