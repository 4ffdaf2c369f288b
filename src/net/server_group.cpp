#include <tambour/server_group.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/event_loop.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/timer.h>

#include "loop/core.h"
#include "net/connection_owner.h"
#include "net/reuse_port.h"

namespace tambour {
namespace {

constexpr bool each_loop_listens(Spread spread) noexcept {
  return spread == Spread::kernel || spread == Spread::processor;
}

/// Of the address alone: what one machine opens comes from many ports.
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

/// The listener of one loop.
class Listener final : public StreamServerBase {
 public:
  explicit Listener(StreamServerBase&& base) noexcept : StreamServerBase(std::move(base)) {}
  using StreamServerBase::accept_socket;
  using StreamServerBase::open;
};

/// The task that waits for all loops in shut_down().
struct Waiter {
  explicit Waiter(EventLoop& waiting) : loop(waiting), event(waiting) {}
  EventLoop& loop;
  TaskEvent event;
};

}  // namespace

/// What the parts on the loops have in common. The functions are for any thread, but where a part
/// is looked into, which is for its loop's own.
class ServerGroupBase::Shared : public std::enable_shared_from_this<Shared> {
 public:
  Shared(LoopGroup& its_group, const GroupListenOptions& given)
      : group(its_group), options(given), parts(its_group.size()) {}

  [[nodiscard]] Part* part_on(const EventLoop& loop) const noexcept {
    const std::size_t index = group.index_of(loop);
    return index < parts.size() ? parts[index].load() : nullptr;
  }
  /// Calls `function` for each part, on its loop; some time, or waiting until it is done.
  void post_to_parts(const std::function<void(Part&)>& function);
  bool for_each_part(const std::function<void(Part&)>& function);

  void count_in(const EventLoop& loop) noexcept {
    group.add_load(loop);
    total.fetch_add(1);
  }
  void count_out(const EventLoop& loop) noexcept;
  [[nodiscard]] bool is_over() const noexcept { return listening == 0 && total == 0; }
  void tell_waiter() noexcept;
  void part_gone() noexcept;
  void wait_for_end() noexcept;
  /// On that loop's thread, for one after the other.
  Result<> open_part(EventLoop& loop, const Endpoint& at);
  static Task<> shut_down(std::shared_ptr<Shared> self, Duration grace);

  LoopGroup& group;
  const GroupListenOptions options;
  Endpoint endpoint;
  std::vector<std::atomic<Part*>> parts;
  std::atomic<std::size_t> total{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::size_t> listening{0};
  std::atomic<EventLoop*> waits_for_room{nullptr};  ///< Of the one that listens for all.
  std::vector<int> processors;                      ///< Of each loop, for steering.

  std::mutex mutex;
  std::condition_variable changed;
  std::size_t parts_alive = 0;
  std::shared_ptr<Waiter> waiter;
};

/// What a server has on one loop, which owns it.
class ServerGroupBase::Part final : public LoopOwned, public ConnectionOwner {
 public:
  Part(std::shared_ptr<Shared> shared, EventLoop& loop)
      : shared_(std::move(shared)), loop_(loop), room_(loop), handlers_(std::in_place, loop) {
    handlers_->set_exception_handler([this](std::exception_ptr thrown) {
      loop::core_of(loop_).throw_out_of_run(std::move(thrown));
    });
    handlers_->set_ended_handler([this] { left(); });
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() override;

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  Result<> listen(const Endpoint& at);
  [[nodiscard]] const Listener& listener() const noexcept { return *listener_; }

  void prepare(const std::function<Task<>(Socket)>& handler);
  void prepare(std::shared_ptr<const ConnectionCallbacks> callbacks);
  void accept();
  void stop() noexcept;
  /// Asks what is left to end.
  void hurry() noexcept {
    if (handlers_) handlers_->request_stop();
    close_all();
  }
  /// Destroys what is here, silently; what arrives later is closed.
  void drop() noexcept;
  /// Counted already.
  void take(Socket socket);
  void make_room() noexcept { room_.set(); }

 private:
  struct HandedOver;

  void left() noexcept override {
    shared_->count_out(loop_);
    room_.set();
  }
  ConnectionOwner* on(EventLoop& loop) noexcept override;
  [[nodiscard]] std::size_t served() const noexcept {
    return size() + (handlers_ ? handlers_->size() : 0);
  }
  Task<> accept_all();
  [[nodiscard]] bool is_full() noexcept;
  [[nodiscard]] EventLoop& choose(const Socket& socket) noexcept;
  void hand_over(Socket socket, EventLoop& to) noexcept;

  std::shared_ptr<Shared> shared_;
  EventLoop& loop_;
  std::optional<Listener> listener_;
  bool listening_ = false;
  std::size_t turn_ = 0;
  std::function<Task<>(Socket)> handler_;
  std::function<void(Socket)> start_;
  TaskEvent room_;
  std::optional<TaskScope> handlers_;
  std::optional<TaskScope> accepting_;
};

/// A socket on its way to another loop.
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
  shared_->part_gone();
}

Result<> ServerGroupBase::Part::listen(const Endpoint& at) {
  const GroupListenOptions& options = shared_->options;
  auto opened = Listener::open(loop_, at,
                               {.backlog = options.backlog,
                                .reuse_port = each_loop_listens(options.spread),
                                .v6_only = options.v6_only});
  if (!opened) return std::unexpected(opened.error());
  listener_.emplace(std::move(*opened));
  listening_ = true;
  ++shared_->listening;
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
  accepting_->spawn(accept_all());
}

Task<> ServerGroupBase::Part::accept_all() {
  for (;;) {
    for (room_.reset(); is_full(); room_.reset()) {
      if (!co_await room_.wait()) co_return;
    }
    auto accepted = co_await listener_->accept_socket();
    if (!accepted) co_return;
    ++shared_->accepted;
    EventLoop& to = choose(*accepted);
    shared_->count_in(to);
    if (&to == &loop_) {
      take(std::move(*accepted));
    } else {
      hand_over(std::move(*accepted), to);
    }
  }
}

bool ServerGroupBase::Part::is_full() noexcept {
  const std::size_t most = shared_->options.connections_max;
  if (each_loop_listens(shared_->options.spread))
    return served() >= std::max<std::size_t>(most / shared_->parts.size(), 1);
  if (shared_->total < most) return false;
  // In this order: whoever leaves counts, and then looks whether somebody waits.
  shared_->waits_for_room = &loop_;
  return shared_->total >= most;
}

EventLoop& ServerGroupBase::Part::choose(const Socket& socket) noexcept {
  LoopGroup& group = shared_->group;
  switch (shared_->options.spread) {
    case Spread::kernel:
    case Spread::processor:
      break;
    case Spread::round_robin:
      return group[turn_++ % group.size()];
    case Spread::peer_address:
      return group.by_hash(hash_of_peer(socket));
    case Spread::least_loaded:
      return group.least_loaded();
  }
  return loop_;
}

void ServerGroupBase::Part::hand_over(Socket socket, EventLoop& to) noexcept {
  // Counted out again by itself, and closed, where there is no memory.
  HandedOver handed_over(shared_, to, std::move(socket));
  try {
    to.post(std::move(handed_over));
  } catch (const std::bad_alloc&) {
  }
}

void ServerGroupBase::Part::take(Socket socket) {
  const std::size_t before = served();
  try {
    if (!handlers_) return left();
    start_(std::move(socket));
  } catch (...) {
    if (served() == before) left();
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
  listener_->stop();
  --shared_->listening;
  shared_->tell_waiter();
}

void ServerGroupBase::Part::drop() noexcept {
  if (!handlers_) return;
  stop();
  accepting_.reset();
  const std::size_t count = served();
  handlers_.reset();
  drop_all();
  close_all();
  for (std::size_t i = 0; i < count; ++i) shared_->count_out(loop_);
}

void ServerGroupBase::Shared::post_to_parts(const std::function<void(Part&)>& function) {
  group.post_to_all([self = shared_from_this(), function](EventLoop& loop) {
    if (Part* part = self->part_on(loop)) function(*part);
  });
}

bool ServerGroupBase::Shared::for_each_part(const std::function<void(Part&)>& function) {
  return group.for_each([this, &function](EventLoop& loop) {
    if (Part* part = part_on(loop)) function(*part);
  });
}

void ServerGroupBase::Shared::count_out(const EventLoop& loop) noexcept {
  group.add_load(loop, -1);
  const std::size_t left = total.fetch_sub(1) - 1;
  if (EventLoop* acceptor = waits_for_room.exchange(nullptr)) {
    try {
      acceptor->post([self = shared_from_this(), acceptor] {
        if (Part* part = self->part_on(*acceptor)) part->make_room();
      });
    } catch (const std::bad_alloc&) {
      waits_for_room = acceptor;  // For the next one that leaves.
    }
  }
  if (left == 0) tell_waiter();
}

void ServerGroupBase::Shared::tell_waiter() noexcept {
  const std::lock_guard lock(mutex);
  if (waiter == nullptr || !is_over()) return;
  // While the lock is held, the task that waits is there, and so is its loop.
  waiter->loop.post([told = waiter] { told->event.set(); });
}

void ServerGroupBase::Shared::part_gone() noexcept {
  tell_waiter();
  const std::lock_guard lock(mutex);
  --parts_alive;
  changed.notify_all();
}

void ServerGroupBase::Shared::wait_for_end() noexcept {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return parts_alive == 0; });
}

Result<> ServerGroupBase::Shared::open_part(EventLoop& loop, const Endpoint& at) {
  const std::size_t index = group.index_of(loop);
  auto* part = new Part(shared_from_this(), loop);
  {
    const std::lock_guard lock(mutex);
    ++parts_alive;
  }
  parts[index] = part;
  loop::core_of(loop).owned().push_back(static_cast<LoopOwned&>(*part));
  if (index > 0 && !each_loop_listens(options.spread)) return {};
  if (auto opened = part->listen(index == 0 ? at : endpoint); !opened) return opened;
  if (index == 0) endpoint = part->listener().endpoint();
  if (options.spread != Spread::processor) return {};
  const int processor = net::only_processor_of_this_thread();
  if (processor < 0) return std::unexpected(system_error(EINVAL));
  processors.push_back(processor);
  if (processors.size() < parts.size()) return {};
  return net::steer_by_processor(loop::core_of(loop).backend().system(),
                                 part->listener().descriptor(), processors);
}

Task<> ServerGroupBase::Shared::shut_down(std::shared_ptr<Shared> self, Duration grace) {
  EventLoop& loop = *(co_await this_task).loop;
  const auto waiter = std::make_shared<Waiter>(loop);
  const struct Waiting {
    Shared& shared;
    Waiting(Shared& its_shared, std::shared_ptr<Waiter> its_waiter) : shared(its_shared) {
      const std::lock_guard lock(shared.mutex);
      shared.waiter = std::move(its_waiter);
    }
    ~Waiting() {
      const std::lock_guard lock(shared.mutex);
      shared.waiter.reset();
    }
  } waiting(*self, waiter);
  self->post_to_parts([](Part& part) { part.stop(); });
  Timer alarm(loop, [&self] { self->post_to_parts([](Part& part) { part.hurry(); }); });
  alarm.start(grace);
  for (bool asked = false; !self->is_over();) {
    waiter->event.reset();
    // Whoever ends after this look tells.
    if (self->is_over() || co_await waiter->event.wait()) continue;
    if (!std::exchange(asked, true)) self->post_to_parts([](Part& part) { part.hurry(); });
  }
}

ServerGroupBase::ServerGroupBase(std::shared_ptr<Shared> shared) noexcept
    : shared_(std::move(shared)) {}
ServerGroupBase::ServerGroupBase(ServerGroupBase&&) noexcept = default;

ServerGroupBase& ServerGroupBase::operator=(ServerGroupBase&& other) noexcept {
  if (this != &other) {
    close();
    shared_ = std::move(other.shared_);
  }
  return *this;
}

ServerGroupBase::~ServerGroupBase() { close(); }

void ServerGroupBase::close() noexcept {
  if (shared_ == nullptr) return;
  // In two rounds: after the first, nothing moves any more from one part to another. Where the
  // group has been stopped, its loops drop their parts themselves.
  if (shared_->for_each_part([](Part& part) { part.drop(); }))
    shared_->for_each_part([](Part& part) { delete &part; });
  shared_->wait_for_end();
  shared_.reset();
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, const Endpoint& at,
                                              const GroupListenOptions& options) {
  if (each_loop_listens(options.spread) && !at.is_ip())
    return std::unexpected(system_error(EOPNOTSUPP));
  ServerGroupBase server(std::make_shared<Shared>(group, options));
  // One after the other: the first finds the port, and steering goes by the order.
  for (std::size_t i = 0; i < group.size(); ++i) {
    Result<> opened;
    const bool all_called = group.for_each([&](EventLoop& loop) {
      if (&loop == &group[i]) opened = server.shared_->open_part(loop, at);
    });
    if (!all_called) return std::unexpected(system_error(ECANCELED));
    if (!opened) return std::unexpected(opened.error());
  }
  return server;
}

void ServerGroupBase::serve_with(const std::function<Task<>(Socket)>& handler) {
  // The others first: what is handed over finds them ready.
  shared_->for_each_part([&](Part& part) { part.prepare(handler); });
  shared_->for_each_part([](Part& part) { part.accept(); });
}

void ServerGroupBase::serve(ConnectionCallbacks callbacks) {
  const auto shared = std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
  shared_->for_each_part([&](Part& part) { part.prepare(shared); });
  shared_->for_each_part([](Part& part) { part.accept(); });
}

const Endpoint& ServerGroupBase::endpoint() const noexcept { return shared_->endpoint; }
void ServerGroupBase::stop() {
  shared_->post_to_parts([](Part& part) { part.stop(); });
}
Task<> ServerGroupBase::shut_down(Duration grace) { return Shared::shut_down(shared_, grace); }
std::size_t ServerGroupBase::connections() const noexcept { return shared_->total; }
std::uint64_t ServerGroupBase::accepted() const noexcept { return shared_->accepted; }

}  // namespace tambour
