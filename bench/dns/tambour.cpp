// The resolver of Tambour's loop.
#include <tambour/tambour.h>

#include <cstddef>
#include <string>

#include "dns/dns.h"

namespace {

class Tambour {
 public:
  void run(bench::Lookups& lookups) {
    for (int i = 0; i < lookups.in_flight(); ++i) spawn(loop_, look_up(lookups));
    loop_.run();
  }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::Task<> look_up(bench::Lookups& lookups) {
    tambour::dns::Resolver& resolver = tambour::dns::Resolver::of(loop_);
    while (const char* const name = lookups.next()) {
      const auto found = co_await resolver.resolve(name, 80);
      lookups.found(found ? found->size() : 0);
    }
  }

  tambour::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Tambour>(argc, argv); }
