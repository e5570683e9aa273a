#include "runtime/shared/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "base/digest.h"
#include "runtime/shared/file_error.h"

// The life of a file: it is created under a fresh name, and then locked. Between these two a
// sweeper may take it for one that was left behind, lock it first, and unlink it; so the creator
// looks, under the lock, whether the file still has a name, and else begins again. From then on the
// lock says that its process lives. The name goes by `unlink` or `rename_to`, and only after that
// the lock. If the process ends before, the kernel frees the lock, and the next sweeper removes the
// file: under the lock, and only if the name still is of the file that it has locked.
//
// A lock says nothing of processes of other hosts where a folder is mounted without locks for all
// hosts. So a name says which host it is of, and a sweeper passes over those of others.

namespace muster::runtime {

namespace {

constexpr std::string_view prefix_of_files = "muster-";
constexpr std::size_t digits_of_host = 8;
constexpr std::size_t digits_of_name = 32;
/// Of a folder's entries that a sweep looks at; of those that have our names.
constexpr int swept_entries_max = 4096;
constexpr int swept_files_max = 256;

int lock_file(int descriptor, int operation) {
  for (;;) {
    if (::flock(descriptor, operation) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t index = 0; index < size; ++index) {
    text += digits[bytes[index] >> 4];
    text += digits[bytes[index] & 15];
  }
  return text;
}

/// The kernel that knows of the locks, for as long as it runs.
const std::string& digits_of_this_host() {
  static const std::string digits = [] {
    std::string id;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, id);
    const std::uint64_t digest = base::digest_of(id);
    std::array<unsigned char, digits_of_host / 2> bytes{};
    for (std::size_t index = 0; index < bytes.size(); ++index)
      bytes[index] = static_cast<unsigned char>(digest >> (8 * index));
    return hex_of(bytes.data(), bytes.size());
  }();
  return digits;
}

/// none: the system gives no random bytes.
std::string fresh_name(std::string_view purpose) {
  std::array<unsigned char, (digits_of_name - digits_of_host) / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return std::string(prefix_of_files) + std::string(purpose) + "-" + digits_of_this_host() +
         hex_of(bytes.data(), bytes.size());
}

bool is_of_host(std::string_view name, std::string_view host) {
  if (name.substr(0, prefix_of_files.size()) != prefix_of_files) return false;
  if (name.size() < prefix_of_files.size() + digits_of_name + 1) return false;
  const std::size_t begin = name.size() - digits_of_name;
  return name[begin - 1] == '-' && name.substr(begin, host.size()) == host;
}

/// Whether its process was gone, and it is removed.
bool remove_leftover(int folder, const char* name) {
  // For writing, as NFS wants it for such a lock. A fifo must not hold us up.
  const base::FileHandle file(
      ::openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return false;
  struct stat opened {};
  if (::fstat(file.get(), &opened) != 0 || !S_ISREG(opened.st_mode)) return false;
  if (opened.st_uid != ::geteuid()) return false;
  if (lock_file(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat named {};
  if (::fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) return false;
  return ::unlinkat(folder, name, 0) == 0;
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& folder, std::string_view purpose) {
  sweep(folder);
  NewFile file;
  file.folder_ = folder;
  for (;;) {
    file.name_ = fresh_name(purpose);
    if (file.name_.empty()) return file_failure("the system gives no random numbers", errno);
    file.descriptor_ = base::FileHandle(
        ::open(file.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.descriptor_) {
      if (errno == EINTR) continue;
      return file_failure("no file can be created in '" + folder + "'", errno);
    }
    file.has_name_ = true;
    // A folder without locks has no sweeper that gets one, either.
    if (lock_file(file.descriptor(), LOCK_EX) != 0) break;
    struct stat found {};
    if (::fstat(file.descriptor(), &found) != 0)
      return file_failure("'" + file.path() + "' cannot be read", errno);
    if (found.st_nlink != 0) break;
    file.has_name_ = false;
  }
  return file;
}

NewFile::~NewFile() { unlink(); }

NewFile::NewFile(NewFile&& other) noexcept { *this = std::move(other); }

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  if (this == &other) return *this;
  unlink();
  folder_ = std::move(other.folder_);
  name_ = std::move(other.name_);
  descriptor_ = std::move(other.descriptor_);
  size_ = other.size_;
  has_name_ = std::exchange(other.has_name_, false);
  owner_ = other.owner_;
  return *this;
}

Result<void> NewFile::reserve(std::uint64_t bytes) {
  // In pieces: a signal undoes the piece that it interrupts, and a process may get many.
  constexpr std::uint64_t piece_bytes = std::uint64_t{32} << 20;
  const std::uint64_t end = size_ + bytes;
  while (size_ < end) {
    const std::uint64_t piece = std::min(piece_bytes, end - size_);
    const int number =
        ::posix_fallocate(descriptor(), static_cast<off_t>(size_), static_cast<off_t>(piece));
    if (number == EINTR) continue;
    if (number != 0) return failed("have room for", bytes, number);
    size_ += piece;
  }
  return {};
}

Result<void> NewFile::append(const void* data, std::uint64_t bytes) {
  auto written = write_at(size_, data, bytes);
  if (written) size_ += bytes;
  return written;
}

Result<void> NewFile::write_at(std::uint64_t offset, const void* data, std::uint64_t bytes) {
  const char* next = static_cast<const char*>(data);
  std::uint64_t left = bytes;
  while (left > 0) {
    const ssize_t count = ::pwrite(descriptor(), next, left, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("take", left, count == 0 ? ENOSPC : errno);
    next += count;
    offset += static_cast<std::uint64_t>(count);
    left -= static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<void> NewFile::sync() {
  while (::fsync(descriptor()) != 0)
    if (errno != EINTR) return failed("keep", size_, errno);
  return {};
}

Result<void> NewFile::rename_to(const std::string& name) {
  // One folder for both names: its path may lead elsewhere by now, where the first name is not.
  const base::FileHandle folder(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::renameat(folder.get(), name_.c_str(), folder.get(), name.c_str()) != 0) {
    return file_failure("'" + path() + "' cannot be renamed to '" + name + "'", errno);
  }
  has_name_ = false;
  name_ = name;
  descriptor_.close();
  // So that the name is there after a crash of the host, too.
  const base::FileHandle synced(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (synced && (::fsync(synced.get()) == 0 || errno == EINVAL)) return {};
  Error error = file_failure("the folder '" + folder_ + "' cannot be written to the disk", errno);
  error.happened = Happened::maybe;
  return error;
}

void NewFile::unlink() {
  if (std::exchange(has_name_, false) && !owner_.is_forked()) ::unlink(path().c_str());
  descriptor_.close();
}

Error NewFile::failed(std::string_view what, std::uint64_t bytes, int number) const {
  Error error = file_failure("the folder '" + folder_ + "' cannot " + std::string(what) + " " +
                                 std::to_string(bytes) + " bytes",
                             number);
  if (error.code != ErrorCode::resource_exhausted) return error;
  struct statvfs found {};
  if (::statvfs(folder_.c_str(), &found) == 0) {
    const std::uint64_t free = std::uint64_t{found.f_bavail} * found.f_frsize;
    error.limit = free;
    error.detail += "; " + std::to_string(free) + " bytes are free there";
  }
  error.actual = bytes;
  error.detail += folder_ == shared_memory_folder
                      ? ". Give the container more shared memory (docker: --shm-size), or remove "
                        "what others have left there"
                      : ". Make room there, or choose another folder";
  return error;
}

bool is_name_of(std::string_view name, std::string_view purpose) {
  const std::string begin = std::string(prefix_of_files) + std::string(purpose) + "-";
  return name.size() == begin.size() + digits_of_name && name.substr(0, begin.size()) == begin &&
         name.find_first_not_of("0123456789abcdef", begin.size()) == std::string_view::npos;
}

std::size_t sweep(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (!entries) return 0;
  const std::string& host = digits_of_this_host();
  std::size_t removed_count = 0;
  int files_count = 0;
  for (int count = 0; count < swept_entries_max && files_count < swept_files_max; ++count) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (!is_of_host(entry->d_name, host)) continue;
    ++files_count;
    if (remove_leftover(::dirfd(entries.get()), entry->d_name)) ++removed_count;
  }
  return removed_count;
}

}  // namespace muster::runtime
