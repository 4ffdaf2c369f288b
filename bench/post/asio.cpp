// Posting with asio::post.

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include "common/asio_version.h"
#include "post/post.h"

namespace {

class Asio {
 public:
  void post(bench::Task task) { asio::post(context_, task); }
  void run() { context_.run(); }
  void stop() { context_.stop(); }
  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Asio>(argc, argv); }
