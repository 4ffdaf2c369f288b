// Two methods of BIOs: one over the evbuffers of a bufferevent, the other over a socket.
#include "libevent/openssl/bufferevent_bio.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <openssl/bio.h>

namespace tambour::libevent {

namespace {

bufferevent* below_of(BIO* bio) noexcept { return static_cast<bufferevent*>(BIO_get_data(bio)); }

int read_below(BIO* bio, char* into, int size) noexcept {
  BIO_clear_retry_flags(bio);
  bufferevent* const below = below_of(bio);
  if (below == nullptr || into == nullptr) return -1;
  evbuffer* const input = bufferevent_get_input(below);
  if (evbuffer_get_length(input) == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  return evbuffer_remove(input, into, static_cast<std::size_t>(size));
}

int write_below(BIO* bio, const char* bytes, int size) noexcept {
  BIO_clear_retry_flags(bio);
  bufferevent* const below = below_of(bio);
  if (below == nullptr || bytes == nullptr || size <= 0) return -1;
  evbuffer* const output = bufferevent_get_output(below);
  auto length = static_cast<std::size_t>(size);
  if (const std::size_t limit = below->wm_write.high; limit != 0) {
    const std::size_t there = evbuffer_get_length(output);
    if (there >= limit) {
      BIO_set_retry_write(bio);
      return -1;
    }
    length = std::min(length, limit - there);
  }
  return evbuffer_add(output, bytes, length) == 0 ? static_cast<int>(length) : -1;
}

long control_below(BIO* bio, int command, long number, void* /*pointer*/) noexcept {
  bufferevent* const below = below_of(bio);
  const auto length = [below](evbuffer* (*get)(bufferevent*)) {
    if (below == nullptr) return 0L;
    return static_cast<long>(std::min<std::size_t>(evbuffer_get_length(get(below)), LONG_MAX));
  };
  switch (command) {
    case BIO_CTRL_GET_CLOSE:
      return BIO_get_shutdown(bio);
    case BIO_CTRL_SET_CLOSE:
      BIO_set_shutdown(bio, static_cast<int>(number));
      return 1;
    case BIO_CTRL_PENDING:
      return length(&bufferevent_get_input);
    case BIO_CTRL_WPENDING:
      return length(&bufferevent_get_output);
    case BIO_CTRL_DUP:
    case BIO_CTRL_FLUSH:
      return 1;
    default:
      return 0;
  }
}

BIO_METHOD* make_bufferevent_method() noexcept {
  BIO_METHOD* const method =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bufferevent");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(
      method, [](BIO* bio, char* into, int size) noexcept { return read_below(bio, into, size); });
  BIO_meth_set_write(method, [](BIO* bio, const char* bytes, int size) noexcept {
    return write_below(bio, bytes, size);
  });
  BIO_meth_set_puts(method, [](BIO* bio, const char* text) noexcept {
    return write_below(bio, text, static_cast<int>(std::strlen(text)));
  });
  BIO_meth_set_ctrl(method, [](BIO* bio, int command, long number, void* pointer) noexcept {
    return control_below(bio, command, number, pointer);
  });
  return method;
}

/// As long as the process exists. Null if there was no memory.
const BIO_METHOD* bufferevent_method() noexcept {
  static BIO_METHOD* const method = make_bufferevent_method();
  return method;
}

int write_to_socket(BIO* bio, const char* bytes, int size) noexcept {
  int fd = -1;
  BIO_get_fd(bio, &fd);
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  // Like the BIO of OpenSSL: ENOTCONN is temporary, because the socket is still being connected.
  if (n <= 0 && BIO_sock_should_retry(static_cast<int>(n)) != 0) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

/// OpenSSL's internal number: bio.h reserves it.
constexpr int start_kernel_tls = 72;

/// With the option SSL_OP_ENABLE_KTLS, OpenSSL would let the kernel encrypt what is sent. Alerts
/// and other records need the write function of OpenSSL then, to say that they are not data.
long control_socket(BIO* bio, int command, long number, void* pointer) noexcept {
  if (command == start_kernel_tls) return 0;
  return BIO_meth_get_ctrl(BIO_s_socket())(bio, command, number, pointer);
}

BIO_METHOD* make_socket_method() noexcept {
  const BIO_METHOD* const original = BIO_s_socket();
  BIO_METHOD* const method = BIO_meth_new(BIO_TYPE_SOCKET, "socket of a bufferevent");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(method, BIO_meth_get_read(original));
  BIO_meth_set_write(method, [](BIO* bio, const char* bytes, int size) noexcept {
    return write_to_socket(bio, bytes, size);
  });
  BIO_meth_set_puts(method, [](BIO* bio, const char* text) noexcept {
    return write_to_socket(bio, text, static_cast<int>(std::strlen(text)));
  });
  BIO_meth_set_ctrl(method, [](BIO* bio, int command, long number, void* pointer) noexcept {
    return control_socket(bio, command, number, pointer);
  });
  BIO_meth_set_create(method, BIO_meth_get_create(original));
  BIO_meth_set_destroy(method, BIO_meth_get_destroy(original));
  return method;
}

const BIO_METHOD* socket_method() noexcept {
  static BIO_METHOD* const method = make_socket_method();
  return method;
}

}  // namespace

BIO* use_bufferevent(SSL* ssl, bufferevent* below) noexcept {
  const BIO_METHOD* const method = bufferevent_method();
  BIO* const bio = method != nullptr ? BIO_new(method) : nullptr;
  if (bio == nullptr) return nullptr;
  BIO_set_init(bio, 1);
  BIO_set_data(bio, below);
  BIO_set_shutdown(bio, 0);
  BIO_up_ref(bio);
  SSL_set_bio(ssl, bio, bio);
  return bio;
}

void release_bufferevent(BIO* bio) noexcept {
  BIO_set_data(bio, nullptr);
  BIO_free(bio);
}

bool use_socket(SSL* ssl, int fd) noexcept {
  const BIO_METHOD* const method = socket_method();
  BIO* const bio = method != nullptr ? BIO_new(method) : nullptr;
  if (bio == nullptr) return false;
  BIO_set_fd(bio, fd, BIO_NOCLOSE);
  SSL_set_bio(ssl, bio, bio);
  return true;
}

int socket_of(SSL* ssl) noexcept {
  BIO* const bio = SSL_get_wbio(ssl);
  return bio != nullptr ? static_cast<int>(BIO_get_fd(bio, nullptr)) : -1;
}

bool uses_plain_socket(SSL* ssl) noexcept {
  BIO* const bio = SSL_get_wbio(ssl);
  return bio != nullptr && bio == SSL_get_rbio(ssl) && BIO_method_type(bio) == BIO_TYPE_SOCKET &&
         BIO_next(bio) == nullptr;
}

}  // namespace tambour::libevent
