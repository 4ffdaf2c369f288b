// A steady_timer of standalone asio, which uses a timerfd.
#include <chrono>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "common/asio_version.h"
#include "sleep/sleep.h"

namespace {

class Asio {
 public:
  void sleep(std::int64_t length_ns) {
    timer_.expires_after(std::chrono::nanoseconds(length_ns));
    timer_.async_wait([](const asio::error_code&) {});
    context_.restart();
    context_.run();
  }
  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};
  asio::steady_timer timer_{context_};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Asio>(argc, argv); }
