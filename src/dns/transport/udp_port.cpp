// UdpPort: a socket with a random port, the queries in flight on it, and its receiving and sending.
#include "dns/transport/udp_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failure.h"
#include "dns/resolver/engine.h"
#include "dns/resolver/query.h"
#include "dns/transport/server.h"
#include "loop/core.h"

namespace tambour::dns::detail {
namespace {

/// Received in one iteration, so that a flood of datagrams does not keep the loop from its timers.
constexpr int batches_max = 4;

/// True if the kernel does not segment a message: the device has no checksum offload (EIO), or a
/// segment exceeds the MTU (EINVAL, EMSGSIZE).
bool refuses_segments(int error) noexcept {
  return error == EIO || error == EINVAL || error == EMSGSIZE;
}

}  // namespace

UdpPort::UdpPort(Engine& engine, Server& server)
    : engine_(engine), server_(server), watch_(engine.core(), [this] { receive(); }) {}

UdpPort::~UdpPort() {
  engine_.forget(*this);
  if (engine_.core().closed()) return;
  watch_.stop();
  if (fd_ >= 0) {
    engine_.core().backend().invalidate(fd_);
    engine_.system().close(fd_);
  }
}

Result<> UdpPort::open() noexcept {
  backend::System& system = engine_.system();
  const Endpoint& to = server_.endpoint();
  fd_ = system.socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (fd_ < 0) return base::failure(errno);
  if (system.connect(fd_, to.data(), to.size()) != 0) return base::failure(errno);
  server_.examine_socket(fd_);
  used_ns_ = engine_.core().now_ns();
  return watch_.start(fd_);
}

void UdpPort::send(Query& query, std::uint16_t id, std::string_view packet, bool is_repeated) {
  if (!is_queued_) engine_.flush_later(*this);
  is_queued_ = true;
  queue_.add(packet, is_repeated);
  try {
    pending_.push_back({.id = id, .query = &query});
  } catch (...) {
    queue_.remove_last();
    throw;
  }
  ++served_;
  used_ns_ = engine_.core().now_ns();
}

void UdpPort::forget(std::uint16_t id) noexcept {
  const auto found = std::ranges::find(pending_, id, &Pending::id);
  if (found == pending_.end()) return;
  *found = pending_.back();
  pending_.pop_back();
}

bool UdpPort::has_id(std::uint16_t id) const noexcept {
  return std::ranges::find(pending_, id, &Pending::id) != pending_.end();
}

void UdpPort::flush() {
  is_queued_ = false;
  const InUse in_use(*this);
  SendQueue::Messages messages;
  bool has_retried = false;
  while (!queue_.empty()) {
    queue_.prepare(messages, server_.can_segment());
    const auto headers = messages.headers();
    const int sent = engine_.system().sendmmsg(fd_, headers.data(),
                                               static_cast<unsigned>(headers.size()), MSG_NOSIGNAL);
    if (sent >= 0) {
      engine_.count_udp_sent(queue_.remove(messages, static_cast<std::size_t>(sent)));
      continue;
    }
    if (errno == EINTR) continue;
    if (messages.packets(0) > 1 && refuses_segments(errno)) {
      server_.disable_segments();
      continue;
    }
    // The error may be that of an earlier datagram. If the send buffer is full, the datagrams count
    // as lost.
    if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
      if (!std::exchange(has_retried, true)) continue;
      fail();
    }
    break;
  }
  queue_.clear();
}

void UdpPort::receive() {
  const InUse in_use(*this);
  backend::System& system = engine_.system();
  Engine::Buffers& buffers = engine_.buffers();
  // The watch reports what is left in the next iteration.
  for (int batches = 0; batches < batches_max; ++batches) {
    const int got = system.recvmmsg(fd_, buffers.messages.data(),
                                    static_cast<unsigned>(buffers.messages.size()), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail();
      return;
    }
    for (int i = 0; i < got; ++i) {
      const mmsghdr& message = buffers.messages[static_cast<std::size_t>(i)];
      // No server sends more than was offered.
      if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
        engine_.count_rejected();
        continue;
      }
      take({static_cast<const std::byte*>(message.msg_hdr.msg_iov->iov_base), message.msg_len});
    }
    if (static_cast<std::size_t>(got) < buffers.messages.size()) return;
  }
}

void UdpPort::take(Bytes packet) {
  Reader reader(packet);
  const std::uint16_t id = reader.u16();
  const auto pending = std::ranges::find(pending_, id, &Pending::id);
  // An empty datagram is no end of file.
  if (reader.has_failed() || pending == pending_.end()) return engine_.count_rejected();
  pending->query->take_udp(server_, *this, id, packet);
}

void UdpPort::fail() {
  // For ECONNREFUSED: nothing listens on the server's port.
  failed_ = true;
  server_.refused(engine_.core().now_ns());
  const std::vector<Pending> pending = std::exchange(pending_, {});
  for (const Pending& entry : pending) entry.query->attempt_failed(server_, this);
}

}  // namespace tambour::dns::detail
