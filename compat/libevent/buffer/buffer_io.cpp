// evbuffers and file descriptors.

#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/broken_pipe.h"
#include "base/system_call.h"
#include "libevent/buffer/buffer.h"
#include "libevent/buffer/buffer_file.h"

using tambour::detail::base::Call;
using tambour::libevent::Chain;
using tambour::libevent::Locked;
namespace base = tambour::detail::base;

namespace {

// Up to this size, a read asks for as much as it may get: an allocation that turns out too large
// costs less than asking the kernel how much there is.
constexpr std::size_t unasked_max = std::size_t{16} * 1024;
// The kernel's answer if it does not know, as for a file descriptor that is not ready.
constexpr std::size_t unknown_size = 4096;
// Of a file, FIONREAD returns the size of the rest, which may exceed any memory.
constexpr std::size_t read_max = std::size_t{256} * 1024;
// A chain of which less than this part is filled is replaced by a smaller one.
constexpr std::size_t filled_part = 4;

constexpr int extents_max = 256;

std::size_t size_to_read(int fd, int wanted) noexcept {
  if (wanted >= 0 && static_cast<std::size_t>(wanted) <= unasked_max)
    return static_cast<std::size_t>(wanted);
  int available = 0;
  if (base::system_call(Call::read, ::ioctl, fd, FIONREAD, &available) != 0 || available <= 0)
    available = unknown_size;
  if (wanted >= 0) available = std::min(available, wanted);
  return std::min(static_cast<std::size_t>(available), read_max);
}

/// Returns a chain with the bytes of one that was filled only in part, or the same.
Chain* fitted(Chain* chain) noexcept {
  if (chain->size >= chain->capacity / filled_part) return chain;
  Chain* const smaller = tambour::libevent::make_chain(chain->size);
  if (smaller == nullptr || smaller->capacity >= chain->capacity) {
    if (smaller != nullptr) tambour::libevent::drop(smaller);
    return chain;
  }
  std::memcpy(smaller->data, chain->data, chain->size);
  smaller->size = chain->size;
  tambour::libevent::drop(chain);
  return smaller;
}

}  // namespace

int evbuffer_read(evbuffer* buffer, evutil_socket_t fd, int howmuch) {
  constexpr int chains_max = 4;
  const Locked locked(buffer);
  if (buffer->back_frozen) return -1;
  std::size_t wanted = std::min(size_to_read(fd, howmuch), SIZE_MAX - buffer->length);
  Chain* chains[chains_max];
  iovec extents[chains_max];
  int count = 0;
  const auto add = [&](Chain* chain, std::size_t space) {
    const std::size_t part = std::min(space, wanted);
    chains[count] = chain;
    extents[count++] = {chain->end(), part};
    wanted -= part;
  };
  for (Chain* chain = buffer->space_chain();
       chain != nullptr && wanted != 0 && count < chains_max - 1; chain = chain->next)
    add(chain, chain->space());
  Chain* more = nullptr;
  if (wanted != 0) {
    more = tambour::libevent::make_exact_chain(wanted);
    if (more == nullptr) return -1;
    add(more, wanted);
  }
  const ssize_t n =
      base::system_call(Call::read, ::readv, fd, static_cast<const iovec*>(extents), count);
  std::size_t rest = n > 0 ? static_cast<std::size_t>(n) : 0;
  for (int i = 0; i < count && chains[i] != more; ++i) {
    const std::size_t part = std::min(rest, extents[i].iov_len);
    buffer->commit(chains[i], part);
    rest -= part;
  }
  if (rest != 0) {
    more->size = rest;
    more = fitted(more);
    buffer->append(more);
    buffer->length += rest;
  } else if (more != nullptr) {
    const int error = errno;
    tambour::libevent::drop(more);
    errno = error;
  }
  if (n > 0) buffer->changed(static_cast<std::size_t>(n), 0);
  return static_cast<int>(n);
}

namespace {

ssize_t write_extents(int fd, iovec* extents, int count, std::size_t size, bool quiet) noexcept {
  const auto write = [&] {
    return base::system_call(Call::write, ::writev, fd, static_cast<const iovec*>(extents), count);
  };
  if (!quiet) return write();
  msghdr message{};
  message.msg_iov = extents;
  message.msg_iovlen = static_cast<std::size_t>(count);
  const ssize_t n = base::system_call(Call::sendmsg, ::sendmsg, fd,
                                      static_cast<const msghdr*>(&message), MSG_NOSIGNAL);
  if (n >= 0 || errno != ENOTSOCK) return n;
  return base::without_sigpipe(size, write);
}

ssize_t send_file(int fd, const Chain& chain, std::size_t size, bool quiet) noexcept {
  const int source = const_cast<Chain&>(chain).extra<Chain::FilePart>().segment->fd;
  auto offset = static_cast<off_t>(chain.begin);
  const auto send = [&] {
    return base::system_call(Call::write, ::sendfile, fd, source, &offset, size);
  };
  return quiet ? base::without_sigpipe(size, send) : send();
}

}  // namespace

ssize_t tambour::libevent::write_from(evbuffer& buffer, int fd, std::size_t size,
                                      bool quiet) noexcept {
  size = std::min(size, buffer.length);
  if (size == 0) return -1;
  size = std::min(size, std::size_t{INT_MAX});
  const Chain* chain = buffer.first;
  ssize_t n = 0;
  if (chain->in_file()) {
    n = send_file(fd, *chain, std::min(size, chain->size), quiet);
  } else {
    iovec extents[extents_max];
    int count = 0;
    std::size_t total = 0;
    for (; size != 0 && count < extents_max && !chain->in_file(); chain = chain->next) {
      const std::size_t part = std::min(size, chain->size);
      extents[count++] = {chain->bytes(), part};
      size -= part;
      total += part;
    }
    n = write_extents(fd, extents, count, total, quiet);
  }
  if (n > 0) {
    buffer.drain(static_cast<std::size_t>(n));
    buffer.changed(0, static_cast<std::size_t>(n));
  }
  return n;
}

int evbuffer_write_atmost(evbuffer* buffer, evutil_socket_t fd, ev_ssize_t howmuch) {
  const Locked locked(buffer);
  if (buffer->front_frozen) return -1;
  const std::size_t size = howmuch < 0 ? buffer->length : static_cast<std::size_t>(howmuch);
  const bool sends_file = buffer->first != nullptr && buffer->first->in_file();
  const ssize_t n = tambour::libevent::write_from(*buffer, fd, size, false);
  // As in libevent, which returns -1 for other bytes.
  if (n < 0 && sends_file && (errno == EAGAIN || errno == EINTR)) return 0;
  return static_cast<int>(n);
}

int evbuffer_write(evbuffer* buffer, evutil_socket_t fd) {
  return evbuffer_write_atmost(buffer, fd, -1);
}
