#include "http/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/network.h"
#include "common/program.h"

#ifdef BENCH_TLS
#include <openssl/ssl.h>
#endif

namespace bench {

#ifdef BENCH_TLS
namespace {

SSL* connect_tls(int fd, const char* protocol) {
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_ecdh_auto(context, 1);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (protocol != nullptr) {
    const std::string list = char(std::strlen(protocol)) + std::string(protocol);
    SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(list.data()),
                        unsigned(list.size()));
  }
  if (SSL_connect(ssl) != 1) fail("client: the TLS handshake failed");
  return ssl;
}

}  // namespace

Channel::Channel(std::uint16_t port, bool tls, const char* protocol, int host)
    : fd_(host == 0 ? connect_to(port) : connect_from(host, port)) {
  if (tls) ssl_ = connect_tls(fd_, protocol);
}

ssize_t Channel::result_of(int answer) const {
  if (answer > 0) return answer;
  const int reason = SSL_get_error(ssl_, answer);
  if (reason == SSL_ERROR_ZERO_RETURN) return 0;
  errno = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
  return -1;
}

Channel::~Channel() {
  SSL_free(ssl_);
  close_socket();
}
#else
Channel::Channel(std::uint16_t port, bool tls, const char*, int host)
    : fd_(host == 0 ? connect_to(port) : connect_from(host, port)) {
  if (tls) fail("built without TLS");
}

Channel::~Channel() { close_socket(); }
#endif

void Channel::close_socket() const {
  if (resets_) {
    close_with_reset(fd_);
  } else {
    close(fd_);
  }
}

void Channel::set_non_blocking() const { fcntl(fd_, F_SETFL, O_NONBLOCK); }

ssize_t Channel::send(const char* bytes, std::size_t size) const {
#ifdef BENCH_TLS
  if (ssl_ != nullptr)
    return result_of(SSL_write(ssl_, bytes, int(std::min<std::size_t>(size, 1U << 30U))));
#endif
  return ::send(fd_, bytes, size, MSG_NOSIGNAL);
}

ssize_t Channel::receive(char* bytes, std::size_t size) const {
#ifdef BENCH_TLS
  if (ssl_ != nullptr)
    return result_of(SSL_read(ssl_, bytes, int(std::min<std::size_t>(size, 1U << 30U))));
#endif
  return ::recv(fd_, bytes, size, 0);
}

}  // namespace bench
