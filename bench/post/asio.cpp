// asio::post.
#include <string>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/version.hpp>

#include "post/post.h"

namespace {

class Asio {
 public:
  void post(bench::Task task) { asio::post(context_, task); }
  void run() { context_.run(); }
  void stop() { context_.stop(); }
  bench::About about() const {
    return {"asio",
            std::to_string(ASIO_VERSION / 100000) + "." +
                std::to_string(ASIO_VERSION / 100 % 1000) + "." +
                std::to_string(ASIO_VERSION % 100),
            "epoll"};
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Asio>(argc, argv); }
