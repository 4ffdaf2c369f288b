#include "server/server_group_part.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <source_location>
#include <string_view>
#include <utility>

#include <tambour/wait.h>

#include "server/accepting.h"

namespace tambour {
namespace {

/// Hashes only the address, because connections from one machine come from many ports.
std::uint64_t hash_of_peer(const Socket& socket) noexcept {
  const auto peer = socket.peer_endpoint();
  if (!peer) return 0;
  const auto bytes = [](const void* data, std::size_t size) {
    return std::hash<std::string_view>()({static_cast<const char*>(data), size});
  };
  switch (peer->family()) {
    case AF_INET:
      return bytes(&reinterpret_cast<const sockaddr_in*>(peer->data())->sin_addr, sizeof(in_addr));
    case AF_INET6:
      return bytes(&reinterpret_cast<const sockaddr_in6*>(peer->data())->sin6_addr,
                   sizeof(in6_addr));
    default:
      return bytes(peer->data(), peer->size());
  }
}

}  // namespace

/// An accepted socket that is being passed to another loop.
struct ServerGroupBase::Part::HandedOver {
  HandedOver(std::shared_ptr<Shared> its_shared, EventLoop& its_loop, Socket its_socket) noexcept
      : shared(std::move(its_shared)), to(&its_loop), socket(std::move(its_socket)) {}
  HandedOver(HandedOver&&) = default;
  HandedOver& operator=(HandedOver&&) = delete;
  ~HandedOver() {
    if (socket.is_open()) shared->count_out(*to);
  }

  void operator()() {
    if (Part* part = shared->part_on(*to)) part->take(Socket(*to, socket.release()));
  }

  std::shared_ptr<Shared> shared;
  EventLoop* to;
  Socket socket;
};

ServerGroupBase::Part::~Part() {
  drop();
  shared_->parts[shared_->group.index_of(loop_)] = nullptr;
  shared_->part_destroyed();
}

Result<> ServerGroupBase::Part::listen(const Endpoint& at) {
  const GroupListenOptions& options = shared_->options;
  return add(net::GroupListener::open(loop_, at,
                                      {.backlog = options.backlog,
                                       .reuse_port = net::each_loop_listens(options.placement),
                                       .v6_only = options.v6_only,
                                       .unix_mode = options.unix_mode,
                                       .tcp = options.tcp},
                                      std::source_location::current()));
}

Result<> ServerGroupBase::Part::adopt(UniqueFd listener, bool (*supports)(const Endpoint&)) {
  return add(net::GroupListener::open(loop_, std::move(listener), supports, {},
                                      std::source_location::current()));
}

Result<> ServerGroupBase::Part::add(Result<StreamServerBase> opened) {
  if (!opened) return std::unexpected(opened.error());
  listeners_.emplace_back(std::move(*opened));
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->listeners.push_back(listeners_.back().descriptor());
  }
  if (!std::exchange(listening_, true)) ++shared_->listening;
  return {};
}

void ServerGroupBase::Part::prepare(const std::function<Task<>(Socket)>& handler) {
  handler_ = handler;
  start_ = [this](Socket socket) { handlers_->spawn(handler_(std::move(socket))); };
}

void ServerGroupBase::Part::prepare(std::shared_ptr<const ConnectionCallbacks> callbacks) {
  start_ = [this, shared = std::move(callbacks)](Socket socket) {
    start(Stream(std::move(socket)), shared);
  };
}

void ServerGroupBase::Part::accept() {
  if (!listening_) return;
  accepting_.emplace(loop_);
  net::report_exceptions(*accepting_, loop_);
  const auto is_full = [this] { return this->is_full(); };
  const auto has_stopped = [this] { return !listening_; };
  const auto take = [this](Socket socket) { take_accepted(std::move(socket)); };
  for (net::GroupListener& listener : listeners_)
    accepting_->spawn(net::accept_all(listener, room_, is_full, has_stopped, take));
}

void ServerGroupBase::Part::take_accepted(Socket socket) noexcept {
  ++shared_->accepted;
  EventLoop& to = choose(socket);
  shared_->count_in(to);
  if (&to == &loop_) {
    net::call_and_report(loop_, [&] { take(std::move(socket)); });
  } else {
    hand_over(std::move(socket), to);
  }
}

bool ServerGroupBase::Part::is_full() noexcept {
  const std::size_t most = shared_->options.connections_max;
  if (net::each_loop_listens(shared_->options.placement)) {
    const std::size_t loops = shared_->parts.size();
    const bool has_one_more = shared_->group.index_of(loop_) < most % loops;
    return served() >= std::max<std::size_t>(most / loops + (has_one_more ? 1 : 0), 1);
  }
  if (shared_->total < most) return false;
  // The order matters: a connection that ends decrements the total and then checks for a waiting
  // loop, so either this thread sees the lower total or the other one sees the waiting loop.
  shared_->waits_for_room = &loop_;
  return shared_->total >= most;
}

EventLoop& ServerGroupBase::Part::choose(const Socket& socket) noexcept {
  LoopGroup& group = shared_->group;
  switch (shared_->options.placement) {
    case Placement::kernel:
    case Placement::processor:
      break;
    case Placement::round_robin:
      return group[next_index_++ % group.size()];
    case Placement::peer_address:
      return group.by_hash(hash_of_peer(socket));
    case Placement::least_loaded:
      return group.least_loaded();
  }
  return loop_;
}

void ServerGroupBase::Part::hand_over(Socket socket, EventLoop& to) noexcept {
  // If memory runs out, the destructor closes the socket and decrements the counters.
  HandedOver handed_over(shared_, to, std::move(socket));
  try {
    to.post(std::move(handed_over));
  } catch (const std::bad_alloc&) {
    return;
  }
}

void ServerGroupBase::Part::take(Socket socket) {
  const std::size_t before = served();
  try {
    if (!handlers_) return connection_removed();
    start_(std::move(socket));
  } catch (...) {
    if (served() == before) connection_removed();
    throw;
  }
}

ConnectionOwner* ServerGroupBase::Part::on(EventLoop& loop) noexcept {
  Part* const part = shared_->part_on(loop);
  if (part != nullptr) shared_->count_in(loop);
  return part;
}

void ServerGroupBase::Part::stop() noexcept {
  if (!std::exchange(listening_, false)) return;
  {
    // copy_listeners() sees each listener either open or not at all.
    const std::lock_guard lock(shared_->mutex);
    for (net::GroupListener& listener : listeners_) {
      std::erase(shared_->listeners, listener.descriptor());
      if (shared_->keeps_path) listener.keep_path();
      listener.stop();
    }
  }
  room_.set();
  --shared_->listening;
  shared_->notify_waiters();
}

void ServerGroupBase::Part::drop() noexcept {
  stop();
  accepting_.reset();
  const std::size_t count = served();
  handlers_.reset();
  drop_all();
  close_all();
  for (std::size_t i = 0; i < count; ++i) shared_->count_out(loop_);
}

}  // namespace tambour
