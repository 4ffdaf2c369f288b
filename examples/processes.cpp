// Runs programs at the same time, reads what they print, and ends the one that takes too long.
#include <cstdio>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Describes how a program ended.
std::string describe(const Process& process, const ChildStatus& status) {
  if (process.has_timed_out()) return "took too long";
  const bool exited = status.event == ChildStatus::Event::exited;
  return (exited ? "exited with " : "ended by signal ") + std::to_string(status.code);
}

/// Runs one program, and prints its output when it has ended.
Task<> run(EventLoop& loop, ProcessOptions options) {
  options.input = Stdio::null();
  options.output = Stdio::pipe();
  options.error_output = Stdio::same_as_output();
  auto process = Process::spawn(loop, options);
  if (!process) {
    std::printf("%s: %s\n", options.arguments[0].c_str(), process.error().message().c_str());
    co_return;
  }
  // While the program runs: it waits when the pipe is full. A program may print without end, so
  // that only the first 64 KiB are kept.
  constexpr std::size_t output_max = 64 * 1024;
  Buffer output;
  for (;;) {
    const auto got = co_await process->output().read(output, 4096);
    if (!got || *got == 0) break;
    if (output.size() > output_max) process->terminate();
  }
  const auto status = co_await process->wait();
  if (!status) co_return;  // The task was asked to stop: the process is killed with `process`.
  std::printf("%s %s: %s", options.arguments[0].c_str(), describe(*process, *status).c_str(),
              output.empty() ? "\n" : output.to_string().c_str());
}

/// Sends a program its input.
Task<> count_words(EventLoop& loop) {
  const ProcessOptions options{
      .arguments = {"wc", "-w"}, .input = Stdio::pipe(), .output = Stdio::pipe()};
  auto counter = Process::spawn(loop, options);
  if (!counter) co_return;
  static_cast<void>(co_await counter->input().write("three small words\n"));
  counter->input().close();
  Buffer answer;
  static_cast<void>(co_await counter->output().read(answer));
  std::printf("wc counts %s", answer.to_string().c_str());
  static_cast<void>(co_await counter->wait());
}

int main() {
  EventLoop loop;
  const std::vector<std::string> greet = {"sh", "-c", "echo \"hello from $GREETER\"; exit 3"};
  auto environment = current_environment();
  environment.emplace_back("GREETER=a child");
  spawn(loop, run(loop, {.arguments = greet, .environment = environment}));
  spawn(loop, run(loop, {.arguments = {"sleep", "1000"}, .timeout = 100ms}));
  spawn(loop, run(loop, {.arguments = {"no-such-program"}}));
  spawn(loop, count_words(loop));
  loop.run();
}
