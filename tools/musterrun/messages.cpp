#include "messages.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <type_traits>

namespace musterrun {

std::string text_of_error(int error) {
  std::string text = std::strerror(error);
  if (error == EAGAIN) text += "; this user may have too many processes (see ulimit -u)";
  if (error == EMFILE) text += "; each rank needs some: raise the limit (ulimit -n)";
  return text;
}

template <class Message>
bool send_message(int socket, const Message& message, const int* descriptors,
                  std::size_t descriptor_count) {
  static_assert(std::is_trivially_copyable_v<Message>);
  iovec part{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(start_descriptor_count * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor_count > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptor_count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptor_count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors, descriptor_count * sizeof(int));
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

template <class Message>
std::optional<Message> receive_message(
    int socket, std::array<muster::base::FileHandle, start_descriptor_count>& taken,
    bool& is_over) {
  Message message;
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(start_descriptor_count * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t bytes = 0;
  do {
    bytes = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) {
    is_over = errno != EAGAIN;
    return {};
  }
  is_over = bytes != static_cast<ssize_t>(sizeof message);
  if (is_over) return {};
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count && index < taken.size(); ++index) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + index * sizeof(int), sizeof descriptor);
      taken[index] = muster::base::FileHandle(descriptor);
    }
  }
  return message;
}

template bool send_message(int, const Order&, const int*, std::size_t);
template bool send_message(int, const Report&, const int*, std::size_t);
template std::optional<Order> receive_message(
    int, std::array<muster::base::FileHandle, start_descriptor_count>&, bool&);
template std::optional<Report> receive_message(
    int, std::array<muster::base::FileHandle, start_descriptor_count>&, bool&);

}  // namespace musterrun
