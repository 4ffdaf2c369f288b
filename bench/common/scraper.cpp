#include "common/scraper.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <string_view>

#include "common/network.h"
#include "common/processor.h"
#include "common/program.h"

namespace bench {
namespace {

void sleep_ns(std::int64_t ns) {
  const timespec pause{ns / 1'000'000'000, ns % 1'000'000'000};
  if (ns > 0) nanosleep(&pause, nullptr);
}

/// Any processor but that of the server, also if the parent is pinned to it.
void leave_pinned_processor() {
  cpu_set_t others;
  CPU_ZERO(&others);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) CPU_SET(processor, &others);
  CPU_CLR(pinned_processor(), &others);
  // Without another one, it stays.
  static_cast<void>(sched_setaffinity(0, sizeof others, &others));
}

/// Whether `text` is a whole response: as long as its head says, or in chunks, of which the last
/// one is empty.
bool is_complete(std::string_view text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) return false;
  constexpr std::string_view name = "Content-Length: ";
  const std::size_t length = text.find(name);
  if (length == std::string_view::npos || length > head) return text.ends_with("\r\n0\r\n\r\n");
  return text.size() >=
         head + 4 +
             std::strtoul(std::string(text.substr(length + name.size(), 20)).c_str(), nullptr, 10);
}

void request_metrics(int fd) {
  constexpr std::string_view request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) != ssize_t(request.size()))
    fail_errno("scraper: send");
  std::array<char, 65536> bytes;
  for (std::string text; !is_complete(text);) {
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got <= 0) fail_errno("scraper: recv");
    text.append(bytes.data(), std::size_t(got));
  }
}

int connect_in_time(std::uint16_t port) {
  for (int waited_ms = 0; !can_connect_to(port); ++waited_ms) {
    if (waited_ms == 5000) fail("no server of metrics");
    sleep_ns(1'000'000);
  }
  return connect_to(port);
}

}  // namespace

Scraper::Scraper(std::uint16_t port, int per_second) {
  void* const shared =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_errno("mmap");
  shared_ = new (shared) Shared;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail_errno("fork");
  if (process_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  // Among them those of loops of the parent.
  close_range(STDERR_FILENO + 1, ~0U, 0);
  leave_pinned_processor();
  scrape(port, per_second);
}

Scraper::~Scraper() {
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

void Scraper::scrape(std::uint16_t port, int per_second) {
  const std::int64_t interval_ns = 1'000'000'000 / per_second;
  std::int64_t due_ns = now_ns();
  for (int fd = -1;;) {
    // While it is paused, too: it wakes up as often, so that what differs are the requests.
    sleep_ns(due_ns - now_ns());
    // A scraper that is late does not scrape more often after that.
    due_ns = std::max(due_ns, now_ns() - interval_ns) + interval_ns;
    if (!shared_->enabled) continue;
    if (fd < 0) fd = connect_in_time(port);
    request_metrics(fd);
    ++shared_->count;
  }
}

int wanted_scrapes() {
  const char* const observed = std::getenv("TAMBOUR_BENCH_OBSERVED");
  if (observed == nullptr || std::string_view(observed) != "scraped") return 0;
  const char* const text = std::getenv("TAMBOUR_BENCH_SCRAPES");
  return text != nullptr ? std::max(std::atoi(text), 1) : 100;
}

}  // namespace bench
