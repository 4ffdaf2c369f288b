#include "dns/responder.h"

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "common/network.h"
#include "common/processor.h"
#include "common/program.h"

namespace bench {
namespace {

constexpr std::size_t packet_bytes = 1500;
constexpr std::size_t header_bytes = 12;
constexpr std::size_t batch = 64;

using Packet = std::array<unsigned char, packet_bytes>;

/// Turns a question of `size` bytes into its answer; returns the size of that, or 0.
std::size_t answer(Packet& packet, std::size_t size) {
  std::size_t end = header_bytes;
  while (end < size && packet[end] != 0) end += 1U + packet[end];
  end += 5;
  if (end > size || packet[5] != 1) return 0;
  const bool is_v6 = packet[end - 3] == 28;
  packet[2] = 0x81;  // A response, recursion desired,
  packet[3] = 0x80;  // and available.
  std::memset(&packet[6], 0, 6);
  packet[7] = 1;
  // The name of the question, its type, class IN, an hour, and the data.
  const unsigned char record[] = {0xc0, 12, 0, packet[end - 3], 0, 1, 0, 0, 14, 16, 0};
  std::memcpy(&packet[end], record, sizeof record);
  end += sizeof record;
  packet[end++] = is_v6 ? 16 : 4;
  // 10.x.y.z and 2001:db8::y:z of the name: clients that remember something about an address would
  // have an advantage if all names had the same one.
  unsigned hash = 2166136261U;
  for (std::size_t i = header_bytes; i < header_bytes + 10; ++i)
    hash = (hash ^ packet[i]) * 16777619U;
  inet_pton(AF_INET6, "2001:db8::", &packet[end]);
  if (!is_v6) packet[end] = 10;
  end += is_v6 ? 16 : 4;
  for (std::size_t i = 1; i <= 3; ++i) packet[end - i] = static_cast<unsigned char>(hash >> 8U * i);
  return end;
}

[[noreturn]] void serve(int fd) {
  static std::array<Packet, batch> packets;
  std::array<mmsghdr, batch> messages;
  std::array<iovec, batch> vectors;
  std::array<sockaddr_in, batch> peers;
  for (;;) {
    for (std::size_t i = 0; i < batch; ++i) {
      vectors[i] = {packets[i].data(), packet_bytes - 64};
      messages[i] = {};
      messages[i].msg_hdr = {.msg_name = &peers[i],
                             .msg_namelen = sizeof peers[i],
                             .msg_iov = &vectors[i],
                             .msg_iovlen = 1,
                             .msg_control = nullptr,
                             .msg_controllen = 0,
                             .msg_flags = 0};
    }
    const int got = recvmmsg(fd, messages.data(), batch, MSG_WAITFORONE, nullptr);
    if (got < 0) fail_errno("name server: recvmmsg");
    for (int i = 0; i < got; ++i) {
      mmsghdr& entry = messages[std::size_t(i)];
      entry.msg_hdr.msg_iov->iov_len = answer(packets[std::size_t(i)], entry.msg_len);
    }
    for (int sent = 0; sent < got;) {
      const int count = sendmmsg(fd, &messages[std::size_t(sent)], unsigned(got - sent), 0);
      // The error is that of an earlier datagram, whose socket was closed.
      sent += count > 0 ? count : 1;
    }
  }
}

}  // namespace

Responder::Responder() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_in at = loopback(53);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    fail_errno("name server: bind");
  const pid_t parent = getpid();
  move_to_another_processor();
  process_ = fork();
  if (process_ < 0) fail_errno("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    serve(fd);
  }
  move_to_pinned_processor();
  close(fd);
}

Responder::~Responder() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace bench
