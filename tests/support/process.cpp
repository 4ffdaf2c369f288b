// What a process uses, its limits, and code that runs in a child.
#include "support/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>

namespace tambour::test {

Duration processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + Duration(used.tv_nsec);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  // Excludes the descriptor of the directory itself.
  return static_cast<std::size_t>(std::distance(begin(all), end(all))) - 1;
}

int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    int status = 127;
    try {
      status = body();
    } catch (const std::exception& thrown) {
      std::cerr << "the child threw: " << thrown.what() << std::endl;
    }
    ::_exit(status);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) std::abort();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

OpenFilesLimit::OpenFilesLimit(rlim_t limit) {
  ::getrlimit(RLIMIT_NOFILE, &before_);
  rlimit now = before_;
  now.rlim_cur = limit;
  ::setrlimit(RLIMIT_NOFILE, &now);
}

OpenFilesLimit::~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

}  // namespace tambour::test
