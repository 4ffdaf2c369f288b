// The watchdog, error exits, and the line of JSON.
#include "common/program.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

constexpr unsigned watchdog_s = 60;

// A signal handler: only async-signal-safe calls.
extern "C" void on_alarm(int) {
  constexpr char message[] = "error: one iteration took more than 60 s; events were lost\n";
  [[maybe_unused]] auto written = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(1);
}

}  // namespace

void fail(const std::string& reason) {
  std::fprintf(stderr, "error: %s\n", reason.c_str());
  // exit(3) would destroy static objects while the loop is inside a callback.
  std::fflush(nullptr);
  _exit(1);
}

void fail_errno(const std::string& text) { fail(text + ": " + std::strerror(errno)); }

void feed_watchdog() {
  std::signal(SIGALRM, on_alarm);
  alarm(watchdog_s);
}

std::string kernel_release() {
  utsname kernel;
  return uname(&kernel) == 0 ? kernel.release : "unknown";
}

void Report::add(std::span<const Figure> iteration) {
  iterations_ += iterations_.empty() ? "{" : ", {";
  const char* separator = "";
  for (const Figure& figure : iteration) {
    char value[64];
    const bool whole = figure.value == std::floor(figure.value);
    std::snprintf(value, sizeof value, whole ? "%.0f" : "%.2f", figure.value);
    iterations_ += separator;
    iterations_ += '"';
    iterations_ += figure.name;
    iterations_ += "\": ";
    iterations_ += value;
    separator = ", ";
  }
  iterations_ += '}';
}

void Report::print(const SubjectInfo& info) const {
  std::printf(R"({"subject": "%s", "version": "%s", "backend": "%s", "iterations": [%s]})"
              "\n",
              info.subject.c_str(), info.version.c_str(), info.backend.c_str(),
              iterations_.c_str());
  if (std::fflush(stdout) != 0) fail_errno("stdout");
}

}  // namespace bench
