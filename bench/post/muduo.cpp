// Posting with EventLoop::queueInLoop.
#include <muduo/net/EventLoop.h>

#include <cstdlib>

#include "post/post.h"

namespace {

class Muduo {
 public:
  void post(bench::Task task) { loop_.queueInLoop(task); }
  void run() { loop_.loop(); }
  void stop() { loop_.quit(); }
  bench::SubjectInfo info() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  muduo::net::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Muduo>(argc, argv); }
