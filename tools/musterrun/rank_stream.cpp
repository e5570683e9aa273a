#include "rank_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <asio/post.hpp>

namespace musterrun {

namespace {

using Descriptor = asio::posix::stream_descriptor;

constexpr std::size_t tail_bytes = std::size_t{16} << 10;
constexpr std::size_t piece_bytes = std::size_t{64} << 10;
constexpr std::size_t unfinished_line_bytes_max = std::size_t{16} << 10;

std::string from_the_begin_of_a_line(std::string bytes, bool is_cut) {
  if (!is_cut) return bytes;
  const auto line = bytes.find('\n');
  return line == std::string::npos || line + 1 == bytes.size() ? bytes : bytes.substr(line + 1);
}

}  // namespace

/// Outlives the stream while a handler waits.
struct RankStream::State {
  State(asio::io_context& its_context, Console& to, StreamTarget where)
      : context(its_context), console(to), target(std::move(where)), pipe(its_context) {}

  /// returns  whether more may come
  bool take() {
    std::string bytes(piece_bytes, '\0');
    const ssize_t count = ::read(pipe.native_handle(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {
      show(std::exchange(line, {}));
      pipe.close();
      return false;
    }
    bytes.resize(static_cast<std::size_t>(count));
    pass(bytes);
    return true;
  }

  /// Such as of a full disk: what follows is still shown.
  void give_up_file(int error) {
    file.close();
    console.lose("musterrun: " + target.file + " takes no more: " + std::strerror(error) +
                 (target.is_shown ? "; what follows is shown, and not kept\n" : "\n"));
  }

  void pass(const std::string& bytes) {
    tail += bytes;
    if (tail.size() > 2 * tail_bytes) {
      tail.erase(0, tail.size() - tail_bytes);
      is_cut = true;
    }
    for (std::size_t done = 0; file && done < bytes.size();) {
      const ssize_t count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) give_up_file(errno);
      done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    if (!target.is_shown) return;
    if (target.prefix.empty()) return console.write(target.stream, bytes);
    line += bytes;
    const auto last = line.rfind('\n');
    const bool is_long = line.size() > unfinished_line_bytes_max;
    const std::size_t end = last == std::string::npos ? (is_long ? line.size() : 0) : last + 1;
    show(line.substr(0, end));
    line.erase(0, end);
  }

  /// Whole lines, each with the prefix.
  void show(const std::string& lines) {
    if (lines.empty()) return;
    std::string text;
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
      text += target.prefix + lines.substr(begin, end - begin);
      begin = end;
    }
    if (!target.prefix.empty() && text.back() != '\n') text += '\n';
    console.write(target.stream, std::move(text));
  }

  asio::io_context& context;
  Console& console;
  StreamTarget target;
  Descriptor pipe;
  muster::base::FileHandle file;
  off_t file_begin = 0;  ///< what was there before
  std::string line;      ///< that has no end yet
  std::string tail;
  bool is_cut = false;
};

RankStream::RankStream(asio::io_context& context, Console& console, StreamTarget target)
    : state_(std::make_shared<State>(context, console, std::move(target))) {
  if (!state_->target.file.empty()) {
    state_->file = muster::base::FileHandle(::open(
        state_->target.file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
    struct stat found {};
    if (!state_->file || ::fstat(state_->file.get(), &found) != 0) return;
    state_->file_begin = S_ISREG(found.st_mode) ? found.st_size : 0;
    if (!state_->target.is_shown) {
      end_of_rank_ = muster::base::FileHandle(::fcntl(state_->file.get(), F_DUPFD_CLOEXEC, 0));
      return;
    }
  }
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return;
  end_of_rank_ = muster::base::FileHandle(pipe[1]);
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  state_->pipe.assign(pipe[0]);
  read(state_);
}

/// The rank has ended, and what it wrote last may not have been read yet: the console was full.
RankStream::~RankStream() {
  drain();
  if (state_->file)
    if (const int error = error_of_last_writes(state_->file.get())) state_->give_up_file(error);
  if (!state_->pipe.is_open()) return;
  state_->show(std::exchange(state_->line, {}));
  state_->pipe.close();
}

void RankStream::read(const std::shared_ptr<State>& state) {
  state->pipe.async_wait(Descriptor::wait_read, [state](const asio::error_code& failed) {
    if (failed || !state->pipe.is_open()) return;
    state->take();
    if (!state->pipe.is_open()) return;
    // Who reads musterrun's output no more has told the rank so, if it went there directly.
    if (state->target.is_shown && !state->file && state->console.is_broken(state->target.stream))
      return state->pipe.close();
    const auto resume = [state] {
      asio::post(state->context, [state] {
        if (state->pipe.is_open()) read(state);
      });
    };
    if (!state->target.is_shown || !state->console.is_full(resume)) read(state);
  });
}

void RankStream::drain() {
  // As much as a pipe holds: the rank's children may go on writing.
  for (int piece = 0; piece < 16 && state_->pipe.is_open(); ++piece)
    if (!state_->take()) return;
}

std::string RankStream::tail() const {
  if (state_->target.is_shown || !state_->file) {
    const std::size_t size = state_->tail.size();
    const bool is_cut = state_->is_cut || size > tail_bytes;
    return from_the_begin_of_a_line(state_->tail.substr(size - std::min(size, tail_bytes)), is_cut);
  }
  struct stat found {};
  if (::fstat(state_->file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  const auto most = static_cast<off_t>(tail_bytes);
  const off_t begin = std::max(state_->file_begin, found.st_size - most);
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(found.st_size - begin, 0)), '\0');
  const ssize_t count = ::pread(state_->file.get(), bytes.data(), bytes.size(), begin);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return from_the_begin_of_a_line(std::move(bytes), begin > state_->file_begin);
}

}  // namespace musterrun
