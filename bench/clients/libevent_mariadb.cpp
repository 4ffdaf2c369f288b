// libevent: libmariadb with an event for each connection.
#include <memory>
#include <vector>

#include "clients/libevent.h"
#include "clients/mariadb_query.h"

namespace bench::libevent {
namespace {

/// A connection, with one query at a time.
class MariadbClient {
 public:
  MariadbClient(event_base* base, const std::string& socket) : base_(base), query_(socket) {
    watch(EV_READ);
  }
  MariadbClient(const MariadbClient&) = delete;
  MariadbClient& operator=(const MariadbClient&) = delete;
  ~MariadbClient() { event_free(event_); }
  void run(Operations& all) {
    all_ = &all;
    query();
  }

 private:
  void watch(short interest) {
    if (interest == interest_) return;
    interest_ = interest;
    if (event_ != nullptr) event_free(event_);
    const auto handle = [](evutil_socket_t, short events, void* data) {
      auto* const self = static_cast<MariadbClient*>(data);
      self->act(self->query_.resume(((events & EV_READ) != 0 ? MYSQL_WAIT_READ : 0) |
                                    ((events & EV_WRITE) != 0 ? MYSQL_WAIT_WRITE : 0)));
    };
    event_ = event_new(base_, query_.fd(), short(interest | EV_PERSIST), handle, this);
    event_add(event_, nullptr);
  }
  void query() {
    if (all_->begin()) act(query_.start());
  }
  void act(int status) {
    if (status == 0) {
      note_end(*all_, base_);
      return query();
    }
    watch(short(((status & MYSQL_WAIT_READ) != 0 ? EV_READ : 0) |
                ((status & MYSQL_WAIT_WRITE) != 0 ? EV_WRITE : 0)));
  }

  event_base* base_;
  MariadbQuery query_;
  event* event_ = nullptr;
  short interest_ = 0;
  Operations* all_ = nullptr;
};

class Mariadb final : public ClientSession {
 public:
  Mariadb(Loop& loop, const ClientSetup& setup) : loop_(loop) {
    for (int i = 0; i < setup.in_flight; ++i)
      clients_.push_back(std::make_unique<MariadbClient>(loop.base(), setup.server));
  }
  void run(Operations& all) override {
    for (const auto& client : clients_) client->run(all);
    loop_.run();
  }

 private:
  Loop& loop_;
  std::vector<std::unique_ptr<MariadbClient>> clients_;
};

}  // namespace

OpenClient mariadb_on(Loop& loop) { return on<Mariadb>(loop); }

}  // namespace bench::libevent
