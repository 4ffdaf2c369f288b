// Bare system calls: one connected socket, on which both questions of a lookup are sent as segments
// of one message. Nothing is cached, sorted or verified; questions are repeated if there was no
// answer at all for a while.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/network.h"
#include "dns/dns.h"

namespace {

class Floor {
 public:
  Floor() {
    const sockaddr_in server = bench::loopback(53);
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0 ||
        epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0)
      bench::fail_errno("socket");
  }
  ~Floor() {
    close(fd_);
    close(epoll_);
  }
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  void run(bench::Lookups& lookups) {
    asked_.assign(std::size_t(lookups.in_flight()), {});
    for (std::size_t i = 0; i < asked_.size(); ++i) ask(lookups, i);
    constexpr int timeout_ms = 100;
    while (!lookups.finished()) {
      epoll_event event;
      if (epoll_wait(epoll_, &event, 1, timeout_ms) == 1) {
        receive(lookups);
      } else {
        for (Asked& asked : asked_) repeat(asked);
      }
    }
  }
  static bench::SubjectInfo info() { return {"floor", bench::kernel_release(), ""}; }

 private:
  struct Asked {
    std::string packet{};  ///< Without its question's type; empty if nothing is asked.
    int answers = 0;
  };

  /// The id of a question is the number of its lookup.
  void ask(bench::Lookups& lookups, std::size_t number) {
    const char* const name = lookups.next();
    std::string& packet = asked_[number].packet;
    packet.clear();
    if (name == nullptr) return;
    packet = {char(number >> 8U), char(number), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    for (std::string_view left = name; !left.empty();) {
      const std::string_view label = left.substr(0, left.find('.'));
      packet += char(label.size());
      packet += label;
      left.remove_prefix(std::min(label.size() + 1, left.size()));
    }
    repeat(asked_[number]);
  }

  void repeat(Asked& asked) {
    asked.answers = 0;
    if (asked.packet.empty()) return;
    std::string both;
    for (const char type : {char(28), char(1)})
      both += asked.packet + std::string({0, 0, type, 0, 1});
    const int size = int(both.size() / 2);
    if (size != segment_ && setsockopt(fd_, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) != 0)
      bench::fail_errno("UDP_SEGMENT");
    segment_ = size;
    if (send(fd_, both.data(), both.size(), 0) < 0) bench::fail_errno("send");
  }

  void receive(bench::Lookups& lookups) {
    std::array<unsigned char, 1500> packet;
    while (recv(fd_, packet.data(), packet.size(), MSG_DONTWAIT) > 0) {
      const std::size_t number = packet[0] * 256U + packet[1];
      if (++asked_[number].answers < 2) continue;
      lookups.found(2);
      ask(lookups, number);
    }
  }

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int segment_ = 0;  ///< The size of a question; names of one run have the same size.
  std::vector<Asked> asked_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Floor>(argc, argv); }
