// The descriptors that a player watches: of the kernel, or of a simulated host.
#include "fuzz/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>

namespace tambour::fuzz {
namespace {

constexpr std::array<char, 4096> bytes{};

class KernelDescriptors final : public Descriptors {
 public:
  explicit KernelDescriptors(const LoopOptions& options) : options_(options) {
    std::signal(SIGPIPE, SIG_IGN);
  }
  LoopOptions options() override { return options_; }
  bool open(Channel channel, int* fds) override {
    if (channel == Channel::pipe) return ::pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0;
    return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0;
  }
  int dup(int fd) override { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }
  void close(int fd) override { ::close(fd); }
  void write(int fd, std::size_t size) override { note(::write(fd, bytes.data(), size)); }
  void read(int fd, std::size_t size) override {
    std::array<char, 4096> into;
    note(::read(fd, into.data(), size));
  }
  void shutdown(int fd, int mode) override { ::shutdown(fd, mode); }
  unsigned ready(int fd) override {
    pollfd probe{.fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP, .revents = 0};
    return ::poll(&probe, 1, 0) > 0 ? unsigned(probe.revents) : 0;
  }
  std::int64_t now_ns() override {
    return std::chrono::duration_cast<Duration>(Clock::now().time_since_epoch()).count();
  }
  std::int64_t wall_now_ns() override {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  void spend(Duration) override {}
  int bad_number() override { return 900; }

 private:
  static void note(ssize_t) {}  // All results are acceptable, including EAGAIN and EPIPE.

  LoopOptions options_;
};

/// The simulator has no poll(2). A separate loop provides it.
class SimulatedDescriptors final : public Descriptors {
 public:
  SimulatedDescriptors(std::uint64_t seed, const sim::Options& options)
      : simulation_(seed, options), host_(simulation_.add_host("host")) {
    probe_ = std::make_unique<EventLoop>(host_.loop_options());
  }
  LoopOptions options() override { return host_.loop_options(); }
  bool open(Channel channel, int* fds) override {
    if (channel == Channel::pipe) return host_.pipe2(fds, 0) == 0;
    return host_.socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0;
  }
  int dup(int fd) override { return host_.dup(fd); }
  void close(int fd) override { host_.close(fd); }
  void write(int fd, std::size_t size) override { host_.write(fd, bytes.data(), size); }
  void read(int fd, std::size_t size) override {
    std::array<char, 4096> into;
    host_.read(fd, into.data(), size);
  }
  void shutdown(int fd, int mode) override { host_.shutdown(fd, mode); }
  unsigned ready(int fd) override {
    Events seen = Events::none;
    FdWatcher watcher(*probe_, fd, Events::read | Events::urgent | Events::write | Events::closed,
                      [&seen](Events events) { seen = events; });
    static_cast<void>(watcher.start());
    const double probability = std::exchange(simulation_.options().spurious_event, 0);
    probe_->run_ready();
    simulation_.options().spurious_event = probability;
    return unsigned(seen);
  }
  std::int64_t now_ns() override { return simulation_.now().time_since_epoch().count(); }
  std::int64_t wall_now_ns() override { return simulation_.wall_now().time_since_epoch().count(); }
  bool set_wall_clock(std::int64_t time_ns) override {
    simulation_.set_wall_clock(WallTime(Duration(time_ns)));
    return true;
  }
  void spend(Duration time) override { simulation_.spend(time); }
  int bad_number() override { return sim::Host::first_descriptor + 900; }

 private:
  sim::Simulation simulation_;
  sim::Host& host_;
  std::unique_ptr<EventLoop> probe_;
};

}  // namespace

std::unique_ptr<Descriptors> kernel_descriptors(const LoopOptions& options) {
  return std::make_unique<KernelDescriptors>(options);
}

std::unique_ptr<Descriptors> simulated_descriptors(std::uint64_t seed,
                                                   const sim::Options& options) {
  return std::make_unique<SimulatedDescriptors>(seed, options);
}

}  // namespace tambour::fuzz
