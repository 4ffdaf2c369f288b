// Posting with EventLoop::post.
#include <tambour/tambour.h>

#include <string>

#include "post/post.h"

namespace {

class Tambour {
 public:
  Tambour() { loop_.ref(); }
  ~Tambour() { loop_.unref(); }
  Tambour(const Tambour&) = delete;
  Tambour& operator=(const Tambour&) = delete;

  void post(bench::Task task) { loop_.post(task); }
  void run() { loop_.run(); }
  void stop() { loop_.stop(); }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Tambour>(argc, argv); }
