#include "muster/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <thread>
#include <utility>

#include "base/failure.h"
#include "base/forked.h"
#include "base/host_pid.h"
#include "client/interruption.h"
#include "runtime/cut_timeout.h"
#include "runtime/shared/locked_file.h"

// A lock's file is there while the lock is held. Who wants the lock opens the file, or makes it,
// and locks it. Then the path may name another file already: the owner of before has removed the
// one that was locked, so this begins anew. Once the locked file is the one that the path names,
// the lock is acquired, and its owner writes who it is. It removes the file while it still holds
// the lock, so nobody who opens that path later waits for a file that has no name.
//
// What stands in a file that could be locked was written by an owner that has died.

MUSTER_BEGIN_NAMESPACE

namespace {

using LockClock = std::chrono::steady_clock;

constexpr std::string_view acquiring = "FileLock::acquire";
constexpr std::string_view lock_heading = "muster lock 1\n";
constexpr std::size_t lock_bytes_max = 4096;
constexpr std::size_t lock_label_bytes_max = 64;
constexpr int removed_while_locking_max = 64;  // where one does not wait

std::string text_of(const FileLockOwner& owner) {
  const auto since = std::chrono::duration_cast<Duration>(owner.since.time_since_epoch());
  return std::string(lock_heading) + "host " + printable(owner.host) + "\npid " +
         std::to_string(owner.pid) + "\nlabel " + printable(owner.label) + "\nsince " +
         std::to_string(since.count()) + "\n";
}

template <class Number>
Number number_of(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// none: nobody has written anything there.
std::optional<FileLockOwner> owner_in(std::string_view text) {
  if (text.empty()) return {};
  FileLockOwner owner;
  if (text.substr(0, lock_heading.size()) != lock_heading) return owner;
  text.remove_prefix(lock_heading.size());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, space);
    const std::string_view value = line.substr(std::min(space + 1, line.size()));
    if (name == "host") owner.host = value;
    if (name == "pid") owner.pid = number_of<std::uint32_t>(value);
    if (name == "label") owner.label = value;
    if (name == "since") owner.since += Duration(number_of<std::int64_t>(value));
  }
  return owner;
}

/// Whether a file of that content may be one that an owner has left: it can have died while it
/// wrote.
bool may_be_of_a_lock(std::string_view content) {
  return content.substr(0, lock_heading.size()) == lock_heading.substr(0, content.size());
}

std::optional<FileLockOwner> read_owner(const base::FileHandle& file) {
  return owner_in(runtime::content_of(file, lock_bytes_max).value_or(std::string()));
}

Error lock_error(std::string_view operation, const std::string& path, ErrorCode code,
                 std::string detail) {
  Error error = base::failure(code, std::move(detail));
  error.operation = operation;
  error.decided_by = "client";
  error.where = path;
  return error;
}

Error held_by(const std::optional<FileLockOwner>& owner, const std::string& path,
              const FileLockOptions& options) {
  const bool has_waited = options.timeout > Duration::zero();
  return lock_error(
      acquiring, path, has_waited ? ErrorCode::timed_out : ErrorCode::busy,
      "it is held by " + (owner ? to_string(*owner) : "somebody unknown") +
          (has_waited ? ": give more time, or end that process" : ": give a timeout to wait"));
}

struct Locked {
  runtime::FilePlace place;
  base::FileHandle file;
  int code = 0;  ///< EAGAIN: another one holds it; ESTALE: its file was removed meanwhile
  std::string_view what;
};

Locked try_to_lock(const std::string& path) {
  auto place = runtime::FilePlace::of(path);
  auto opened = place.open(O_RDWR | O_CREAT);
  if (!opened.handle) return {{}, {}, opened.code, "the lock's file cannot be opened"};
  int code = runtime::lock(opened.handle);
  if (code == 0 && !place.names(opened.handle)) code = ESTALE;
  return {std::move(place), std::move(opened.handle), code, "the lock's file cannot be locked"};
}

std::optional<Error> refused_path(std::string_view operation, const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return lock_error(operation, path, ErrorCode::invalid_argument,
                    "the path is empty, or has a zero byte: name the lock's file");
}

}  // namespace

std::string to_string(const FileLockOwner& owner) {
  if (owner.pid == 0) return "somebody unknown";
  std::string text = "pid " + std::to_string(owner.pid) + " on " + printable(owner.host);
  if (!owner.label.empty()) text += " (" + printable(owner.label) + ")";
  const std::time_t seconds = std::chrono::system_clock::to_time_t(owner.since);
  std::tm utc{};
  std::array<char, 32> time{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return text;
  const std::size_t size = std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text + " since " + std::string(time.data(), size);
}

class FileLock::Impl {
 public:
  Impl(std::string path, Locked locked, std::optional<FileLockOwner> before)
      : path_(std::move(path)),
        place_(std::move(locked.place)),
        file_(std::move(locked.file)),
        taken_over_from_(std::move(before)) {}
  ~Impl() { static_cast<void>(release()); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// What is written is for people: the lock holds without it, on a full disk, too.
  void write_owner(std::string_view label) {
    FileLockOwner own;
    own.host = runtime::own_host_name();
    own.pid = base::host_pid();
    own.label = label.substr(0, lock_label_bytes_max);
    own.since = std::chrono::system_clock::now();
    if (::ftruncate(file_.get(), 0) != 0) return;
    static_cast<void>(runtime::write_at(file_, text_of(own), 0));
  }

  Result<void> release();

  bool is_held() const { return static_cast<bool>(file_) && !process_.is_forked(); }
  const std::string& path() const { return path_; }
  const std::optional<FileLockOwner>& taken_over_from() const { return taken_over_from_; }

 private:
  const base::Owner process_;
  const std::string path_;
  const runtime::FilePlace place_;
  base::FileHandle file_;
  const std::optional<FileLockOwner> taken_over_from_;
};

Result<void> FileLock::Impl::release() {
  constexpr std::string_view operation = "FileLock::release";
  if (!file_) return {};
  const base::FileHandle file = std::move(file_);
  if (process_.is_forked()) {
    // An unlock here would end the parent's lock; a close does not.
    return lock_error(operation, path_, ErrorCode::forked,
                      "it is held by this process's parent, which alone may release it");
  }
  Result<void> removed;
  const int code = place_.remove(file);
  if (code == ENOENT) {
    removed = lock_error(operation, path_, ErrorCode::not_found,
                         "its file was removed while it was held, so others may have held it, "
                         "too: leave the file alone");
  } else if (code != 0) {
    removed = runtime::file_error(operation, path_, "the lock's file cannot be removed", code);
    // Whoever comes next shall not take this for a dead owner's.
    if (::ftruncate(file.get(), 0) != 0) removed.error().detail += "; nor emptied";
  }
  // Forked children may still have the descriptor: the close alone would not do.
  runtime::unlock(file);
  return removed;
}

Result<FileLock> FileLock::acquire(const std::string& path, const FileLockOptions& options) {
  if (auto refused = refused_path(acquiring, path)) return *std::move(refused);
  const auto deadline = LockClock::now() + runtime::cut_to_a_year(options.timeout);
  const bool may_wait = options.timeout > Duration::zero();
  client::Interruption interruption;
  std::chrono::milliseconds pause(1);
  for (int count = 1;; ++count) {
    auto locked = try_to_lock(path);
    if (locked.code == 0) {
      const auto content = runtime::content_of(locked.file, lock_bytes_max);
      if (content && !may_be_of_a_lock(*content)) {
        return lock_error(acquiring, path, ErrorCode::invalid_argument,
                          "the file is there and has something else in it: name one of the "
                          "lock's own, which is removed when the lock is released");
      }
      auto before = read_owner(locked.file);
      if (before && options.logger) {
        options.logger(LogLevel::warning, "the lock " + printable(path) + " was left by " +
                                              to_string(*before) + ", which has died");
      }
      auto impl = std::make_unique<Impl>(path, std::move(locked), std::move(before));
      impl->write_owner(options.label);
      return FileLock(std::move(impl));
    }
    const bool is_removed = locked.code == ESTALE;
    if (!is_removed && locked.code != EAGAIN)
      return runtime::file_error(acquiring, path, locked.what, locked.code);
    const auto left = deadline - LockClock::now();
    const bool goes_on =
        may_wait ? left > left.zero() : is_removed && count < removed_while_locking_max;
    if (!goes_on)
      return held_by(locked.file ? read_owner(locked.file) : std::nullopt, path, options);
    if (!may_wait) continue;
    if (interruption.is_there())
      return lock_error(acquiring, path, ErrorCode::cancelled,
                        client::Interruption::error().detail);
    std::this_thread::sleep_for(std::min<LockClock::duration>(pause, left));
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
}

Result<std::optional<FileLockOwner>> FileLock::owner_of(const std::string& path) {
  constexpr std::string_view operation = "FileLock::owner_of";
  if (auto refused = refused_path(operation, path)) return *std::move(refused);
  const auto opened = runtime::open_regular(path, O_RDONLY);
  if (opened.code == ENOENT || opened.code == ESTALE) return std::optional<FileLockOwner>();
  const int code = opened.handle ? runtime::holder_of(opened.handle) : opened.code;
  if (code == 0) return std::optional<FileLockOwner>();
  if (code == EAGAIN) return std::optional(read_owner(opened.handle).value_or(FileLockOwner()));
  return runtime::file_error(operation, path, "the lock's file cannot be looked at", code);
}

FileLock::FileLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileLock::~FileLock() = default;
FileLock::FileLock(FileLock&&) noexcept = default;
FileLock& FileLock::operator=(FileLock&&) noexcept = default;

Result<void> FileLock::release() { return impl_ ? impl_->release() : Result<void>(); }
bool FileLock::is_held() const { return impl_ && impl_->is_held(); }

const std::string& FileLock::path() const {
  static const std::string none;
  return impl_ ? impl_->path() : none;
}

const std::optional<FileLockOwner>& FileLock::taken_over_from() const {
  static const std::optional<FileLockOwner> none;
  return impl_ ? impl_->taken_over_from() : none;
}

MUSTER_END_NAMESPACE
