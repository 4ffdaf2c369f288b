// The signal masks of worker threads and of the programs that they start.
#include <csignal>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::worker_signals_test {
namespace {

/// Returns the signals that are blocked in a program started as system(3) starts it.
std::string mask_of_program() {
  std::string line;
  std::FILE* const status = ::popen("grep SigBlk /proc/self/status", "r");
  if (status == nullptr) return line;
  for (int c = std::fgetc(status); c != EOF; c = std::fgetc(status)) line += char(c);
  ::pclose(status);
  return line;
}

TEST(WorkerSignals, mask_is_that_of_the_thread_that_uses_the_pool) {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  ::pthread_sigmask(SIG_SETMASK, &one, &before);
  const std::string here = mask_of_program();
  EXPECT_NE(here, "");
  EventLoop loop;
  WorkerPool pool;
  std::string there;
  bool blocks_only_one = false;
  spawn(loop, [](WorkerPool& workers, std::string& mask, bool& only_one) -> Task<> {
    auto work = [&] {
      sigset_t found;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &found);
      only_one = sigismember(&found, SIGUSR2) == 1 && sigismember(&found, SIGTERM) == 0;
      mask = mask_of_program();
    };
    co_await workers.run(work);
  }(pool, there, blocks_only_one));
  loop.run();
  EXPECT_TRUE(blocks_only_one);
  EXPECT_EQ(there, here);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace tambour::worker_signals_test
