// Descriptors and credentials in the ancillary data of Unix sockets.
#include "net/ancillary_data.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

namespace tambour::detail::net {
namespace {

/// SCM_PIDFD, which older headers lack. The kernel sends such messages if the program has set
/// SO_PASSPIDFD: unix(7).
constexpr int scm_pidfd = 4;

}  // namespace

void put_descriptors(msghdr& message, std::span<const int> descriptors) noexcept {
  if (descriptors.empty()) {
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    return;
  }
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
}

std::vector<UniqueFd> take_descriptors(msghdr& message) {
  std::array<UniqueFd, UnixStream::descriptors_max> come;
  std::size_t count = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_len < CMSG_LEN(0)) continue;
    const bool is_pidfd = header->cmsg_type == scm_pidfd;
    if (header->cmsg_type != SCM_RIGHTS && !is_pidfd) continue;
    const std::size_t bytes = header->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int number;
      std::memcpy(&number, CMSG_DATA(header) + at, sizeof(number));
      UniqueFd received(number);
      // Without a place in the result, the descriptor is closed.
      if (!is_pidfd && count < come.size()) come[count++] = std::move(received);
    }
  }
  const auto end = come.begin() + static_cast<std::ptrdiff_t>(count);
  return {std::make_move_iterator(come.begin()), std::make_move_iterator(end)};
}

std::optional<PeerCredentials> credentials_of(msghdr& message) noexcept {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS ||
        header->cmsg_len < CMSG_LEN(sizeof(ucred)))
      continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    return PeerCredentials{.process = sender.pid, .user = sender.uid, .group = sender.gid};
  }
  return std::nullopt;
}

}  // namespace tambour::detail::net
