// libuv: getaddrinfo(3) on its threads.
#include <netdb.h>
#include <sys/socket.h>

#include <cstddef>
#include <vector>

#include <uv.h>

#include "dns/dns.h"

namespace {

class Libuv {
 public:
  Libuv() { uv_loop_init(&loop_); }
  ~Libuv() { uv_loop_close(&loop_); }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void run(bench::Lookups& lookups) {
    lookups_ = &lookups;
    requests_.resize(std::size_t(lookups.in_flight()));
    for (uv_getaddrinfo_t& request : requests_) {
      request.data = this;
      start_next(request);
    }
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  void start_next(uv_getaddrinfo_t& request) {
    const char* const name = lookups_->next();
    if (name == nullptr) return;
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    uv_getaddrinfo(
        &loop_, &request,
        [](uv_getaddrinfo_t* ended, int, addrinfo* found) {
          static_cast<Libuv*>(ended->data)->end(*ended, found);
        },
        name, "80", &hints);
  }

  void end(uv_getaddrinfo_t& request, addrinfo* found) {
    std::size_t count = 0;
    for (auto* entry = found; entry != nullptr; entry = entry->ai_next) ++count;
    uv_freeaddrinfo(found);
    lookups_->found(count);
    start_next(request);
  }

  uv_loop_t loop_{};
  std::vector<uv_getaddrinfo_t> requests_;
  bench::Lookups* lookups_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Libuv>(argc, argv); }
