#include "tls/client.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <openssl/err.h>

#include "common/network.h"
#include "common/program.h"

namespace bench {
namespace {

[[noreturn]] void fail_tls(const std::string& subject) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  fail("client: " + subject + ": " + text.data());
}

}  // namespace

struct TlsClients::Connection {
  enum class State : std::uint8_t { shaking, awaiting_ticket, receiving };

  SSL* ssl = nullptr;
  int fd = -1;
  State state = State::shaking;
  std::string head;          ///< Of the answer, as far as it was received.
  std::int64_t missing = 0;  ///< Bytes of the body, after the head.
  bool in_body = false;
  bool has_ticket = false;
};

TlsClients::TlsClients(std::uint16_t port, std::string name)
    : port_(port),
      name_(std::move(name)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      context_(SSL_CTX_new(TLS_client_method())),
      buffer_(std::size_t{256} * 1024) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  if (context_ == nullptr || SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256") != 1 ||
      SSL_CTX_set1_groups_list(context_, "X25519") != 1 ||
      SSL_CTX_set_app_data(context_, this) != 1)
    fail_tls("SSL_CTX");
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context_, 1);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context_, &keep_session);
}

TlsClients::~TlsClients() {
  close_all();
  SSL_SESSION_free(session_);
  SSL_CTX_free(context_);
  close(epoll_);
}

int TlsClients::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto& self = *static_cast<TlsClients*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  static_cast<Connection*>(SSL_get_app_data(ssl))->has_ticket = true;
  if (self.session_ == nullptr) self.session_ = SSL_SESSION_dup(session);
  return 0;
}

void TlsClients::close_all() {
  for (const auto& connection : connections_) {
    SSL_free(connection->ssl);
    if (connection->fd >= 0) close_with_reset(connection->fd);
  }
  connections_.clear();
}

void TlsClients::open() {
  connections_.push_back(std::make_unique<Connection>());
  restart(*connections_.back());
}

void TlsClients::set_bytes(int bytes) {
  bytes_ = bytes;
  request_ = "GET /" + std::to_string(bytes) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

/// Uses a copy of the session, because OpenSSL marks a session as not resumable when a connection
/// that continues it receives a new ticket.
void TlsClients::resume(Connection& connection) {
  SSL_SESSION* const copy = SSL_SESSION_dup(session_);
  if (copy == nullptr || SSL_set_session(connection.ssl, copy) != 1) fail_tls("SSL_set_session");
  SSL_SESSION_free(copy);
}

void TlsClients::restart(Connection& connection) {
  connection.fd = connect_to(port_);
  connection.state = Connection::State::shaking;
  fcntl(connection.fd, F_SETFL, O_NONBLOCK);
  connection.has_ticket = false;
  connection.ssl = SSL_new(context_);
  if (connection.ssl == nullptr || SSL_set_app_data(connection.ssl, &connection) != 1 ||
      SSL_set_tlsext_host_name(connection.ssl, name_.c_str()) != 1 ||
      SSL_set_fd(connection.ssl, connection.fd) != 1)
    fail_tls("SSL_new");
  if (resumes_) resume(connection);
  SSL_set_connect_state(connection.ssl);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event) != 0) fail_errno("client: epoll_ctl");
  step(connection);
}

/// Fails unless the call has to be repeated when more was received.
void TlsClients::check_wait(Connection& connection, int answer, const char* text) {
  // Requests and handshakes always fit into the buffer of the socket.
  if (SSL_get_error(connection.ssl, answer) != SSL_ERROR_WANT_READ) fail_tls(text);
}

void TlsClients::step(Connection& connection) {
  ERR_clear_error();
  switch (connection.state) {
    case Connection::State::shaking:
      return shake(connection);
    case Connection::State::awaiting_ticket:
      return await_ticket(connection);
    case Connection::State::receiving:
      return receive(connection);
  }
}

void TlsClients::shake(Connection& connection) {
  const int answer = SSL_do_handshake(connection.ssl);
  if (answer != 1) {
    check_wait(connection, answer, "handshake");
    return;
  }
  if (resumes_ && SSL_session_reused(connection.ssl) != 1)
    fail("client: the server did not resume the session");
  if (goal_ != Goal::handshakes) return request(connection);
  connection.state = Connection::State::awaiting_ticket;
  await_ticket(connection);
}

/// A ticket is the last message of the server, so that it has done everything for the handshake. A
/// reset leaves the end of the connection out of the measurement: servers differ in whether they
/// answer a close_notify.
void TlsClients::await_ticket(Connection& connection) {
  char byte = 0;
  const int answer = SSL_read(connection.ssl, &byte, 1);
  if (answer > 0) fail("client: the server sent data without a request");
  check_wait(connection, answer, "waiting for a ticket");
  if (!connection.has_ticket) return;
  ++handshakes_;
  SSL_free(std::exchange(connection.ssl, nullptr));
  close_with_reset(std::exchange(connection.fd, -1));
}

void TlsClients::request(Connection& connection) {
  connection.head.clear();
  connection.in_body = false;
  connection.state = Connection::State::receiving;
  if (SSL_write(connection.ssl, request_.data(), int(request_.size())) != int(request_.size()))
    fail_tls("sending a request");
}

/// Returns true if the head is complete. Then `missing` is what remains of the body.
bool TlsClients::note_head(Connection& connection, std::size_t received) {
  connection.head.append(buffer_.data(), received);
  const std::size_t end = connection.head.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  constexpr std::string_view field = "Content-Length: ";
  const std::size_t at = connection.head.find(field);
  if (!connection.head.starts_with("HTTP/1.1 200 ") || at == std::string::npos ||
      std::atoi(connection.head.c_str() + at + field.size()) != bytes_)
    fail("client: unexpected answer: " + connection.head.substr(0, end));
  connection.in_body = true;
  connection.missing = bytes_ - std::int64_t(connection.head.size() - end - 4);
  return true;
}

void TlsClients::receive(Connection& connection) {
  for (;;) {
    const int answer = SSL_read(connection.ssl, buffer_.data(), int(buffer_.size()));
    if (answer <= 0) {
      check_wait(connection, answer, "receiving");
      return;
    }
    if (connection.in_body) {
      connection.missing -= answer;
    } else if (!note_head(connection, std::size_t(answer))) {
      continue;
    }
    if (connection.missing > 0) continue;
    ++downloads_;
    if (goal_ == Goal::idle) return SSL_free(std::exchange(connection.ssl, nullptr));
    request(connection);
  }
}

void TlsClients::run_once() {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll_, events.data(), int(events.size()), 100);
  if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
  for (int i = 0; i < count; ++i) step(*static_cast<Connection*>(events[std::size_t(i)].data.ptr));
}

std::int64_t TlsClients::shake_hands(int at_once, bool resume, double seconds) {
  const auto before = handshakes_;
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  if (resume && session_ == nullptr) {
    open();
    while (connections_.front()->fd >= 0) run_once();
    if (session_ == nullptr) fail("client: the server sent no ticket");
  }
  resumes_ = resume;
  while (int(connections_.size()) < at_once) open();
  while (now_ns() < end) {
    for (const auto& connection : connections_) {
      if (connection->fd < 0) restart(*connection);
    }
    run_once();
  }
  return handshakes_ - before;
}

void TlsClients::open_downloads(int connections, int bytes) {
  goal_ = Goal::downloads;
  set_bytes(bytes);
  for (int i = 0; i < connections; ++i) open();
}

std::int64_t TlsClients::download(double seconds) {
  const auto before = downloads_;
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  while (now_ns() < end) run_once();
  return (downloads_ - before) * bytes_;
}

void TlsClients::open_idle(int connections, int bytes) {
  goal_ = Goal::idle;
  set_bytes(bytes);
  constexpr int at_once = 16;
  const auto begun = [&, before = downloads_](int opened) {
    return opened - int(downloads_ - before);
  };
  for (int opened = 0; begun(opened) > 0 || opened < connections;) {
    for (; opened < connections && begun(opened) < at_once; ++opened) open();
    run_once();
  }
}

}  // namespace bench
