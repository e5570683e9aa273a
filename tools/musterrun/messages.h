#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file_handle.h"

// What musterrun and its guardian tell each other, over a pair of sockets that keep messages whole.
// Both are the same program, so a message is the memory of a struct.

namespace musterrun {

struct Order {
  enum class Kind : std::uint32_t {
    start,    ///< a rank; with `start_descriptor_count` descriptors
    forward,  ///< a signal to all ranks
    end,      ///< all processes; again: as the later one says
  };
  Kind kind = Kind::start;
  std::int32_t local_rank = 0;
  std::uint32_t argument_count = 0;  ///< of the strings in the text; the others are variables
  std::uint32_t string_count = 0;
  std::int32_t signal = 0;     ///< forward
  std::int32_t were_told = 0;  ///< end: they have a signal that ends them
  std::int64_t grace_ns = 0;   ///< end
};

/// Those of `start`: a file with the arguments and then the variables, each ended by a zero byte;
/// standard input, output and error.
inline constexpr std::size_t start_descriptor_count = 4;

struct Report {
  enum class Kind : std::uint32_t {
    started,      ///< number: its pid
    not_started,  ///< number: errno; step: at what
    ended,        ///< number: its wait status
    gone,         ///< no process is left, but `number` that cannot be killed, such as `pid`
  };
  enum class Step : std::uint32_t { text, process, execution };
  Kind kind = Kind::started;
  Step step = Step::text;
  std::int32_t local_rank = 0;
  std::int32_t number = 0;
  std::int32_t pid = 0;
};

/// What an errno of a process that could not be started says, and which limit it may be.
std::string text_of_error(int error);

/// Sends a message with descriptors.
///
/// returns  whether it is sent; errno EAGAIN: the other side has not read those before;
///          ETOOMANYREFS: descriptors on the way are too many for this user
template <class Message>
bool send_message(int socket, const Message& message, const int* descriptors = nullptr,
                  std::size_t descriptor_count = 0);
/// The next message, without waiting.
///
/// taken    the descriptors that came with it
/// returns  nothing: none is there, or the other side is gone (`is_over`)
template <class Message>
std::optional<Message> receive_message(
    int socket, std::array<muster::base::FileHandle, start_descriptor_count>& taken, bool& is_over);

}  // namespace musterrun
