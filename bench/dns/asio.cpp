// asio: getaddrinfo(3) on its thread.
#include <asio.hpp>

#include <iterator>
#include <system_error>

#include "common/asio_version.h"
#include "dns/dns.h"

namespace {

class Asio {
 public:
  void run(bench::Lookups& lookups) {
    for (int i = 0; i < lookups.in_flight(); ++i) start_next(lookups);
    context_.restart();
    context_.run();
  }
  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  void start_next(bench::Lookups& lookups) {
    const char* const name = lookups.next();
    if (name == nullptr) return;
    resolver_.async_resolve(name, "80", [this, &lookups](std::error_code, const auto& found) {
      lookups.found(std::size_t(std::distance(found.begin(), found.end())));
      start_next(lookups);
    });
  }

  asio::io_context context_{1};
  asio::ip::tcp::resolver resolver_{context_};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Asio>(argc, argv); }
