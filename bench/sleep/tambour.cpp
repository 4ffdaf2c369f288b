// A one-shot timer of Tambour, with the minimum timer slack.
#include <tambour/tambour.h>

#include <string>

#include "sleep/sleep.h"

namespace {

class Tambour {
 public:
  void sleep(std::int64_t length_ns) {
    timer_.start(tambour::Duration(length_ns));
    loop_.run();
  }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::EventLoop loop_{{.timer_slack = tambour::Duration(1)}};
  tambour::Timer timer_{loop_, [] {}};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Tambour>(argc, argv); }
