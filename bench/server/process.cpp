#include "server/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <string>

#include "common/network.h"

namespace bench {

/// Memory shared by the two processes.
struct ServerProcess::SharedState {
  std::atomic<bool> listening = false;
  std::atomic<unsigned> replies = 0;
  std::atomic<std::int64_t> heap_bytes = 0;
  std::array<char, 64> subject{}, version{}, backend{};
};

namespace {

constexpr int timeout_ms = 5000;

std::function<void()> reply_to_query;

// mallinfo2(3) is not async-signal-safe. This is safe only because the client queries the server
// while the server is waiting in the kernel.
extern "C" void on_heap_query(int) { reply_to_query(); }

void copy_to(std::array<char, 64>& target, const std::string& text) {
  std::snprintf(target.data(), target.size(), "%s", text.c_str());
}

/// Waits until `done` returns true. Polling does not disturb the processor of the server.
template <class Done>
void wait_for(const Done& done, pid_t process, const std::string& text) {
  for (int waited = 0; !done(); ++waited) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
    if (waited == timeout_ms || waitpid(process, nullptr, WNOHANG) != 0) fail("the server " + text);
  }
}

/// Calls `entry` with the process and those that it has started and that still run. Few subjects
/// start any.
template <class Each>
void for_each_process(pid_t process, const Each& entry) {
  entry(process);
  const std::string number = std::to_string(process);
  std::ifstream children("/proc/" + number + "/task/" + number + "/children");
  for (pid_t child = 0; children >> child;) for_each_process(child, entry);
}

}  // namespace

ServerProcess::ServerProcess(Serve serve, ServerOptions options) : port_(free_port()) {
  options.port = port_;
  const bool is_scraped = wanted_scrapes() != 0 && options.metrics_port == 0;
  if (is_scraped) options.metrics_port = free_port();
  void* shared =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_errno("mmap");
  shared_ = new (shared) SharedState;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail_errno("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    move_to_pinned_processor();
    // Standard output is reserved for the report, but some libraries log to it.
    if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0)
      dup2(null, STDOUT_FILENO);
    // Some libraries write without MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
    reply_to_query = [state = shared_] {
      const auto heap = mallinfo2();
      state->heap_bytes = std::int64_t(heap.uordblks + heap.hblkhd);
      ++state->replies;
    };
    struct sigaction action{};
    action.sa_handler = on_heap_query;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    serve(options, [state = shared_](const SubjectInfo& info) {
      copy_to(state->subject, info.subject);
      copy_to(state->version, info.version);
      copy_to(state->backend, info.backend);
      state->listening = true;
    });
    fail("the server stopped unexpectedly");
  }
  move_to_another_processor();
  wait_for([this] { return shared_->listening.load(); }, process_, "does not listen");
  info_ = {shared_->subject.data(), shared_->version.data(), shared_->backend.data()};
  if (!is_scraped) return;
  scraper_.emplace(options.metrics_port, wanted_scrapes());
  scraper_->resume();
}

ServerProcess::~ServerProcess() {
  scraper_.reset();  // Before its server: it fails if its connection is closed.
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
  munmap(shared_, sizeof(SharedState));
}

bool ServerProcess::is_waiting() const {
  // The state follows the name of the program in parentheses: proc_pid_stat(5).
  std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
  std::string line;
  if (!std::getline(file, line)) fail("cannot read /proc/PID/stat");
  const std::size_t parenthesis = line.rfind(')');
  return parenthesis != std::string::npos && line.compare(parenthesis, 3, ") S") == 0;
}

void ServerProcess::wait_until_idle() const {
  if (scraper_) scraper_->pause();
  std::int64_t before = -1;
  int quiet = 0;
  wait_for(
      [&] {
        // Unchanged processor time is not enough: on a busy machine, the server may be runnable but
        // not scheduled.
        const std::int64_t now = cpu_ns();
        quiet = now == before && is_waiting() ? quiet + 1 : 0;
        before = now;
        return quiet == 10;
      },
      process_, "does not become idle");
  if (scraper_) scraper_->resume();
}

std::int64_t ServerProcess::heap_bytes() const {
  const unsigned before = shared_->replies;
  kill(process_, SIGUSR1);
  wait_for([&] { return shared_->replies != before; }, process_, "does not reply");
  return shared_->heap_bytes;
}

std::int64_t ServerProcess::rss_bytes() const {
  std::ifstream pages("/proc/" + std::to_string(process_) + "/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  if (!(pages >> size >> resident >> shared)) fail("cannot read /proc/PID/statm");
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

void ServerProcess::wait_until_it_listens() const {
  for (int waited_ms = 0; !can_connect_to(port()); ++waited_ms) {
    if (waited_ms == 5000) fail("the server does not listen");
    usleep(1000);
  }
  wait_until_idle();
}

std::int64_t ServerProcess::cpu_ns() const {
  std::int64_t total = 0;
  for_each_process(process_, [&](pid_t value) { total += bench::cpu_ns(value); });
  return total;
}

std::int64_t ServerProcess::anonymous_bytes() const { return rollup_bytes("Anonymous:"); }

std::int64_t ServerProcess::pss_bytes() const { return rollup_bytes("Pss:"); }

std::int64_t ServerProcess::rollup_bytes(const char* name) const {
  std::int64_t kibibytes = 0;
  for_each_process(process_, [&](pid_t value) {
    std::ifstream file("/proc/" + std::to_string(value) + "/smaps_rollup");
    std::string word;
    while (file >> word && word != name) continue;
    std::int64_t local = 0;
    if (!(file >> local)) fail("cannot read /proc/PID/smaps_rollup");
    kibibytes += local;
  });
  return kibibytes * 1024;
}

}  // namespace bench
