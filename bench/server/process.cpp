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

/// What the two processes share.
struct ServerProcess::Page {
  std::atomic<bool> listens = false;
  std::atomic<unsigned> answers = 0;
  std::atomic<std::int64_t> heap_bytes = 0;
  std::array<char, 64> subject{}, version{}, backend{};
};

namespace {

constexpr int patience = 5000;  // Milliseconds.

std::function<void()> answer;

// Not what a signal handler may do, were anything else going on: whoever asks has seen that the
// server is at rest, which is waiting in the kernel.
extern "C" void on_question(int) { answer(); }

void write_to(std::array<char, 64>& place, const std::string& text) {
  std::snprintf(place.data(), place.size(), "%s", text.c_str());
}

/// Waits until `done` says so. Polls: a server's processor is not disturbed by that.
template <class Done>
void wait_for(const Done& done, pid_t process, const std::string& what) {
  for (int waited = 0; !done(); ++waited) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
    if (waited == patience || waitpid(process, nullptr, WNOHANG) != 0) fail("the server " + what);
  }
}

}  // namespace

ServerProcess::ServerProcess(Serve serve, ServerOptions options) : port_(free_port()) {
  options.port = port_;
  void* shared =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_errno("mmap");
  page_ = new (shared) Page;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail_errno("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    move_to_own_processor();
    // The standard output is the report's; some libraries log there.
    if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
      dup2(nowhere, STDOUT_FILENO);
    // Not every library writes without it.
    std::signal(SIGPIPE, SIG_IGN);
    answer = [page = page_] {
      const auto heap = mallinfo2();
      page->heap_bytes = std::int64_t(heap.uordblks + heap.hblkhd);
      ++page->answers;
    };
    struct sigaction action{};
    action.sa_handler = on_question;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    serve(options, [page = page_](const About& about) {
      write_to(page->subject, about.subject);
      write_to(page->version, about.version);
      write_to(page->backend, about.backend);
      page->listens = true;
    });
    fail("the server has stopped by itself");
  }
  move_to_another_processor();
  wait_for([this] { return page_->listens.load(); }, process_, "does not listen");
  about_ = {page_->subject.data(), page_->version.data(), page_->backend.data()};
}

ServerProcess::~ServerProcess() {
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
  munmap(page_, sizeof(Page));
}

bool ServerProcess::sleeps() const {
  // The state follows the name of the program, which stands in brackets: proc_pid_stat(5).
  std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
  std::string line;
  if (!std::getline(file, line)) fail("reading stat");
  const std::size_t bracket = line.rfind(')');
  return bracket != std::string::npos && line.compare(bracket, 3, ") S") == 0;
}

void ServerProcess::settle() const {
  std::int64_t before = -1;
  int quiet = 0;
  wait_for(
      [&] {
        // To use no time is not enough: on a busy machine it may only wait for its turn.
        const std::int64_t now = cpu_ns();
        quiet = now == before && sleeps() ? quiet + 1 : 0;
        before = now;
        return quiet == 10;
      },
      process_, "does not come to rest");
}

std::int64_t ServerProcess::heap_bytes() const {
  const unsigned before = page_->answers;
  kill(process_, SIGUSR1);
  wait_for([&] { return page_->answers != before; }, process_, "does not answer");
  return page_->heap_bytes;
}

std::int64_t ServerProcess::rss_bytes() const {
  std::ifstream pages("/proc/" + std::to_string(process_) + "/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  if (!(pages >> size >> resident >> shared)) fail("reading statm");
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

}  // namespace bench
