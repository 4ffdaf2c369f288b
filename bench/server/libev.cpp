// The server on libev: an ev_io per connection; reading and writing is left to the program.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <unordered_set>
#include <vector>

#include <ev.h>

#include "server/server.h"
#include "server/socket_helpers.h"

namespace {

class Libev {
 public:
  explicit Libev(const bench::ServerOptions& options) : service_(options.service) {
    ev_io_init(&listener_, on_accept, bench::listen_on(options.port), EV_READ);
    listener_.data = this;
    ev_io_start(loop_, &listener_);
  }

  void run() { ev_run(loop_, 0); }
  bench::SubjectInfo info() const {
    return {"libev", std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor()),
            ev_backend(loop_) == EVBACKEND_EPOLL ? "epoll" : "other"};
  }

 private:
  struct Connection {
    ev_io io;
    std::string unsent;  ///< Bytes that the kernel has not accepted yet.
  };

  static void on_accept(struct ev_loop* loop, ev_io* io, int) {
    auto& self = *static_cast<Libev*>(io->data);
    for (int fd; (fd = bench::accept_one(io->fd)) >= 0;) {
      auto* connection = new Connection;
      connection->io.data = &self;
      ev_io_init(&connection->io, on_ready, fd, EV_READ);
      ev_io_start(loop, &connection->io);
      self.connections_.insert(connection);
    }
  }

  static void on_ready(struct ev_loop*, ev_io* io, int events) {
    auto& self = *static_cast<Libev*>(io->data);
    // libev's idiom: the watcher is the first member.
    auto& connection = *reinterpret_cast<Connection*>(io);
    if ((events & EV_WRITE) != 0) return self.send_unsent(connection);
    const ssize_t got = recv(io->fd, self.buffer_.data(), self.buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      self.close_one(connection);
    } else if (self.service_ == bench::Service::echo) {
      self.deliver(connection, std::size_t(got));
    } else {
      for (Connection* entry : self.connections_) self.deliver(*entry, std::size_t(got));
    }
  }

  void deliver(Connection& connection, std::size_t size) {
    std::size_t taken = 0;
    if (connection.unsent.empty()) taken = bench::send_some(connection.io.fd, buffer_.data(), size);
    if (taken == size) return;
    connection.unsent.append(buffer_.data() + taken, size - taken);
    watch(connection, EV_WRITE);
  }

  void send_unsent(Connection& connection) {
    std::string& unsent = connection.unsent;
    unsent.erase(0, bench::send_some(connection.io.fd, unsent.data(), unsent.size()));
    if (!unsent.empty()) return;
    unsent = {};
    watch(connection, EV_READ);
  }

  void watch(Connection& connection, int events) {
    ev_io_stop(loop_, &connection.io);
    ev_io_modify(&connection.io, events);
    ev_io_start(loop_, &connection.io);
  }

  void close_one(Connection& connection) {
    ev_io_stop(loop_, &connection.io);
    close(connection.io.fd);
    connections_.erase(&connection);
    delete &connection;
  }

  bench::Service service_;
  struct ev_loop* loop_ = ev_loop_new(EVFLAG_AUTO);
  ev_io listener_;
  std::unordered_set<Connection*> connections_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t(1) << 18);
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Libev>(argc, argv); }
