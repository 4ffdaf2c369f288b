// A server of lines and its client, written with watchers.
#include "sim/service.h"

#include <array>
#include <cerrno>
#include <chrono>

namespace tambour::test {

using namespace std::chrono_literals;

class LineServer::Connection {
 public:
  Connection(LineServer& server, int fd)
      : server_(server),
        fd_(fd),
        watcher_(server.loop_, fd, Events::read, [this](Events) { on_events(); }),
        idle_(server.loop_, [this] { close(); }) {
    idle_.start(60s);
    static_cast<void>(watcher_.start());
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    watcher_.stop();
    server_.host_.close(fd_);
  }

 private:
  void close() { server_.connections_.erase(fd_); }

  void on_events() {
    const auto alive = server_.connections_.at(fd_);
    idle_.reset();
    if (!read() || !write()) {
      close();
      return;
    }
    watcher_.set(out_.empty() ? Events::read
                 : ended_     ? Events::write
                              : Events::read | Events::write);
  }

  /// Returns false if the connection is over.
  bool read() {
    std::array<char, 512> bytes;
    for (int round = 0; round < 4 && !ended_; ++round) {
      const ssize_t count = server_.host_.recv(fd_, bytes.data(), bytes.size(), 0);
      if (count < 0 && errno == EAGAIN) break;
      if (count < 0) {
        if (server_.mutant_ == Mutant::dies_of_early_reset && !any_) server_.watcher_.stop();
        return false;
      }
      ended_ = count == 0;
      any_ = true;
      in_.append(bytes.data(), std::size_t(count));
    }
    answer();
    return true;
  }

  void answer() {
    for (std::size_t end; (end = in_.find('\n')) != std::string::npos; in_.erase(0, end + 1)) {
      const std::string line = in_.substr(0, end);
      out_.append(line.rbegin(), line.rend()) += '\n';
    }
  }

  bool write() {
    while (!out_.empty()) {
      const ssize_t count = server_.host_.send(fd_, out_.data(), out_.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == ENOBUFS)) return true;
      if (count < 0) return false;
      const bool several = out_.find('\n') + 1 != out_.size();
      out_.erase(0, std::size_t(count));
      if (server_.mutant_ == Mutant::forgets_short_write && several) out_.clear();
    }
    return !ended_;
  }

  LineServer& server_;
  int fd_;
  bool ended_ = false;
  bool any_ = false;
  std::string in_;
  std::string out_;
  FdWatcher watcher_;
  Timer idle_;
};

LineServer::LineServer(EventLoop& loop, sim::Host& host, std::uint16_t port, Mutant mutant)
    : loop_(loop),
      host_(host),
      mutant_(mutant),
      watcher_(loop, -1, Events::read, [this](Events) { accept_all(); }),
      try_again_(loop, [this] { static_cast<void>(watcher_.start()); }) {
  const sockaddr_in address = host.endpoint(port);
  while (fd_ < 0) fd_ = host.socket(AF_INET, SOCK_STREAM, 0);
  host.bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  host.listen(fd_, 5);
  watcher_.set(fd_, Events::read);
  static_cast<void>(watcher_.start());
}

void LineServer::close() {
  watcher_.stop();
  try_again_.stop();
  connections_.clear();
  host_.close(fd_);
}

void LineServer::accept_all() {
  for (;;) {
    const int fd = host_.accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK);
    if (fd >= 0) {
      connections_.emplace(fd, std::make_shared<Connection>(*this, fd));
      continue;
    }
    if (errno == EAGAIN) return;
    // Out of descriptors: retrying at once would fail again.
    watcher_.stop();
    try_again_.start(100ms);
    return;
  }
}

LineClient::LineClient(sim::Simulation& simulation, EventLoop& loop, sim::Host& host,
                       sockaddr_in server, int total)
    : simulation_(simulation),
      host_(host),
      server_(server),
      total_(total),
      watcher_(loop, -1, Events::read, [this](Events events) { on_events(events); }),
      reopen_(loop, [this] { open(); }),
      think_(loop, [this] { ask(); }),
      patience_(loop, [this] { lose(); }) {
  reopen_.start(0s);
  think_.start(0s);
}

void LineClient::ask() {
  const auto batch = 1 + int(simulation_.random(4));
  for (int i = 0; i < batch && asked_ < total_; ++i) {
    std::string line = std::to_string(asked_++) + " ";
    // In separate statements: the evaluation order of arguments differs between compilers.
    const char letter = char('a' + simulation_.random(26));
    line.append(simulation_.random(300), letter);
    questions_.push_back(line + "\n");
    expected_.emplace_back(line.rbegin(), line.rend());
    out_ += questions_.back();
  }
  if (fd_ < 0) return;
  patience_.start(10s);
  watcher_.set(Events::read | Events::write);
}

void LineClient::open() {
  fd_ = host_.socket(AF_INET, SOCK_STREAM, 0);
  if (fd_ < 0) {
    reopen_.start(100ms);
    return;
  }
  ++connections_;
  host_.connect(fd_, reinterpret_cast<const sockaddr*>(&server_), sizeof server_);
  patience_.start(10s);
  watcher_.set(fd_, Events::read | Events::write);
  static_cast<void>(watcher_.start());
  // Resends the questions that were not answered.
  out_.clear();
  for (const std::string& question : questions_) out_ += question;
}

void LineClient::lose() {
  watcher_.stop();
  patience_.stop();
  host_.close(fd_);
  fd_ = -1;
  in_.clear();
  if (!done()) reopen_.start(100ms);
}

void LineClient::on_events(Events) {
  if (!write() || !read() || done()) {
    lose();
    return;
  }
  watcher_.set(out_.empty() ? Events::read : Events::read | Events::write);
}

bool LineClient::write() {
  while (!out_.empty()) {
    const ssize_t count = host_.send(fd_, out_.data(), out_.size(), 0);
    if (count < 0) return errno == EAGAIN || errno == ENOBUFS;
    out_.erase(0, std::size_t(count));
  }
  return true;
}

bool LineClient::read() {
  std::array<char, 512> bytes;
  for (;;) {
    const ssize_t count = host_.recv(fd_, bytes.data(), bytes.size(), 0);
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    in_.append(bytes.data(), std::size_t(count));
    take_answers();
  }
}

void LineClient::take_answers() {
  for (std::size_t end; (end = in_.find('\n')) != std::string::npos; in_.erase(0, end + 1)) {
    if (expected_.empty() || in_.compare(0, end, expected_.front()) != 0) {
      simulation_.fail("a wrong answer: " + in_.substr(0, end));
      return;
    }
    expected_.pop_front();
    questions_.pop_front();
    ++answered_;
    patience_.reset();
    if (!questions_.empty() || done()) continue;
    patience_.stop();
    think_.start(Duration(simulation_.random(std::uint64_t(8'000'000'000))));
  }
}

}  // namespace tambour::test
