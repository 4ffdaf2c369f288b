#include <tambour/stream_server.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/event_loop.h>
#include <tambour/proxy_protocol.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/timer.h>
#include <tambour/wait.h>
#include <tambour/when.h>

#include "backend/system.h"
#include "base/check.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/connection_owner.h"
#include "net/tcp_options.h"
#include "server/accepting.h"
#include "server/unix_name.h"

namespace tambour {
namespace {

std::unexpected<Error> last_error() noexcept { return std::unexpected(system_error(errno)); }

class Accept final : public SocketWait {
 public:
  Accept(Socket& listener, bool wait) noexcept
      : SocketWait(listener, Events::read,
                   wait ? detail::FirstCall::when_ready : detail::FirstCall::within_budget) {}
  [[nodiscard]] int await_resume() const noexcept { return outcome; }

 private:
  [[nodiscard]] bool step(loop::Core& core) noexcept override {
    constexpr int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    backend::System& system = core.backend().system();
    return finish(io::retry([&] { return system.accept4(fd, nullptr, nullptr, flags); }));
  }
};

/// Returns whether accept(2) reported an error of the pending connection and not of the listener:
/// accept(2), "Error handling", "treat them like EAGAIN".
bool concerns_only_the_peer(int error) noexcept {
  constexpr int errors[] = {ECONNABORTED, EPROTO,     ENOPROTOOPT, EHOSTDOWN, ENONET,
                            EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, ENETDOWN,  EPERM};
  return std::ranges::find(errors, error) != std::end(errors);
}

/// Returns whether the process or the system has run out of a resource, which may be temporary.
/// ENOSPC: the limit of watches of epoll(7) is reached (max_user_watches).
bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == ENOSPC;
}

Result<net::UnixName> bind_and_listen(backend::System& system, int fd, const Endpoint& at,
                                      const ListenOptions& options) {
  if (net::UnixName::is_path(at))
    return net::UnixName::listen(system, fd, at, options.backlog, options.unix_mode);
  if (system.bind(fd, at.data(), at.size()) != 0 || system.listen(fd, options.backlog) != 0)
    return last_error();
  return {};
}

/// On Linux an accepted socket inherits TCP_NODELAY from its listener (tcp(7) does not document
/// it), so the server needs no system call for each stream. Without it, small ends of large
/// messages would be delayed.
Result<> set_no_delay(Socket& socket) noexcept {
  return socket.set_option(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

/// A callback may destroy the server while the accepting task, or the task that has read a PROXY
/// header, is on the stack. No callback is invoked after that, and the loop defers the deletion of
/// the state to the end of the iteration.
class StreamServerBase::State final : public detail::Closure, private ConnectionOwner {
 public:
  State(Socket listener, net::UnixName name, const Endpoint& at, const ListenOptions& options)
      : core_(loop::core_of(listener.loop())),
        loop_(listener.loop()),
        listener_(std::move(listener)),
        name_(std::move(name)),
        endpoint_(at),
        options_(options),
        room_(loop_),
        handlers_(std::in_place, loop_),
        greetings_(loop_),
        acceptor_(loop_) {
    for (TaskScope* scope : {&*handlers_, &greetings_, &acceptor_})
      net::report_exceptions(*scope, loop_);
    handlers_->set_ended_handler([this] { room_.set(); });
    greetings_.set_ended_handler([this] { room_.set(); });
    core_.attach();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() override {
    drop_callbacks();
    core_.detach();
  }

  /// Returns the state. Aborts with a message if the server was moved from.
  static State& existing(const std::unique_ptr<State>& state, const char* function) noexcept {
    if (state == nullptr) [[unlikely]]
      base::fail_check("StreamServer::%s() was called on a server that was moved from", function);
    return *state;
  }

  /// Returns the state. Aborts with a message if the server was moved from, if its loop has been
  /// destroyed, or on another thread than the loop's. A null `function` means for the destructor.
  static State& of(const std::unique_ptr<State>& state, const char* function) noexcept {
    existing(state, function);
    if (state->core_.closed()) [[unlikely]]
      state->misused(function, "after its event loop was destroyed",
                     "destroy the server before its EventLoop");
    if (!state->core_.in_thread()) [[unlikely]]
      state->misused(function, "on another thread than that of its event loop",
                     "post() a callback that calls it to the loop");
    return *state;
  }

  /// Called before `state` is destroyed. If one of its callbacks is on the stack, defers the
  /// deletion to the end of the iteration.
  static void leave(std::unique_ptr<State>& state) noexcept {
    if (state == nullptr || of(state, nullptr).calls_ == 0) return;
    state->drop_callbacks();
    loop::Core& core = state->core_;
    core.defer_delete(state.release());
  }

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] int descriptor() const noexcept { return listener_.descriptor(); }
  [[nodiscard]] std::size_t connections() const noexcept {
    return (handlers_ ? handlers_->size() : 0) + greetings_.size() + ConnectionOwner::size();
  }
  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }

  void serve(std::function<Task<>(Socket)> handler) {
    check_not_serving();
    handler_ = std::move(handler);
    take_ = [this](Socket socket) {
      const Counted starting(starting_);
      handlers_->spawn(handler_(std::move(socket)));
    };
    accept_all();
  }

  void serve(ConnectionCallbacks callbacks) {
    check_not_serving();
    take_ = [this, shared = std::make_shared<const ConnectionCallbacks>(std::move(callbacks))](
                Socket socket) { start(Stream(std::move(socket)), shared); };
    accept_all();
  }

  void keep_path() noexcept { name_.leave(); }
  void set_no_delay_each_time() noexcept { sets_no_delay_ = true; }

  void stop() noexcept {
    if (!listener_.is_open()) return;
    acceptor_.request_stop();
    backend::Backend& backend = loop::core_of(loop_).backend();
    // Before the listener is closed: no other server replaces the path while this one listens.
    name_.remove();
    // Another process may have the listener open too; closing it here does not stop it then.
    const int fd = listener_.release();
    backend.deregister(fd);
    backend.close(fd);
  }

  void check_accepts_by_hand() const noexcept {
    if (take_) [[unlikely]]
      misused("accept", "after serve()", "a server either serves its streams or is accepted from");
  }

  Task<> shut_down(Duration grace) {
    if (handlers_->runs(co_await this_task)) [[unlikely]]
      misused("shut_down", "by one of its own handlers, for which it waits,",
              "call stop(), or spawn the shut_down() on the loop");
    stop();
    co_await acceptor_.join();
    Timer alarm(loop_, [this] {
      handlers_->request_stop();
      greetings_.request_stop();
      close_all();
    });
    alarm.start(grace);
    // In this order, because each task that reads a PROXY header ends by starting a handler.
    co_await greetings_.join();
    co_await handlers_->join();
    while (ConnectionOwner::size() > 0) {
      room_.reset();
      if (!co_await room_.wait()) close_all();
    }
  }

  Task<Result<Socket>> accept_socket() {
    Duration pause = net::pause_least;
    int refused = 0;
    for (;;) {
      if (!listener_.is_open()) co_return std::unexpected(system_error(ECANCELED));
      const int outcome = co_await Accept(listener_, !in_a_row_);
      if (outcome >= 0) {
        ++accepted_;
        const std::uint64_t iteration = loop::core_of(loop_).iteration_number();
        in_a_row_ = iteration - std::exchange(accepted_in_iteration_, iteration) <= 1;
        Socket socket(loop_, outcome);
        if (sets_no_delay_) static_cast<void>(set_no_delay(socket));
        co_return socket;
      }
      const bool is_peers = concerns_only_the_peer(-outcome);
      if (!is_peers && !is_shortage(-outcome)) co_return std::unexpected(system_error(outcome));
      // Many such errors in a row may be caused by a rule of the system (EPERM, for example), which
      // does not pass soon.
      if (!is_peers || ++refused > refused_most) {
        if (auto slept = co_await sleep_for(pause); !slept)
          co_return std::unexpected(slept.error());
        pause = std::min(pause * 2, pause_most);
      }
    }
  }

 private:
  static constexpr Duration pause_most = std::chrono::milliseconds(640);
  static constexpr int refused_most = 16;

  [[noreturn]] void misused(const char* function, const char* how, const char* fix) const noexcept {
    const char* const name = endpoint_.is_ip() ? "TcpServer" : "UnixServer";
    base::fail_check("%s::%s%s() was called %s on the server listening at %s; %s", name,
                     function != nullptr ? "" : "~", function != nullptr ? function : name, how,
                     endpoint_.to_string().c_str(), fix);
  }

  void check_not_serving() const noexcept {
    if (take_) [[unlikely]]
      misused("serve", "twice", "create one server for each handler or set of callbacks");
  }

  /// Increments `count` for its lifetime.
  class Counted {
   public:
    explicit Counted(int& count) noexcept : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }

   private:
    int& count_;
  };

  /// Closes everything and destroys the handlers. Tasks on the stack end by themselves: the
  /// accepting task has no listener any more, and a task that reads a PROXY header starts no
  /// handler.
  void drop_callbacks() noexcept {
    base::check(starting_ == 0, "a server was destroyed by a task that it runs");
    silent_ = true;
    stop();
    drop_all();
    handlers_.reset();
  }

  void connection_removed() noexcept override { room_.set(); }

  void accept_all() {
    acceptor_.spawn(net::accept_all(
        *this, room_, [this] { return connections() >= options_.connections_max; },
        [this] { return !listener_.is_open(); },
        // An exception of on_connection, or of a handler that is not a coroutine, ends only this
        // connection.
        [this](Socket socket) {
          net::call_and_report(loop_, [&] { serve_accepted(std::move(socket)); });
        }));
  }

  void serve_accepted(Socket socket) {
    if (options_.proxy_protocol == ProxyProtocol::off) {
      const Counted calling(calls_);
      take_(std::move(socket));
    } else {
      greetings_.spawn(take_proxied(std::move(socket)));
    }
  }

  /// Runs concurrently with the handlers, so that a proxy that sends no header delays no other
  /// connection.
  Task<> take_proxied(Socket socket) {
    Stream stream(std::move(socket));
    auto header = co_await timeout(options_.proxy_header_timeout,
                                   read_proxy_header(stream, options_.proxy_header_bytes_max));
    if (silent_) co_return;
    const Counted calling(calls_);
    if (!header) {
      if (options_.on_refused) options_.on_refused(stream, header.error());
      co_return;
    }
    stream.set_proxy_header(std::make_unique<const ProxyHeader>(std::move(*header)));
    take_(std::move(stream));
  }

  loop::Core& core_;  ///< Outlives the loop, unlike `loop_`.
  EventLoop& loop_;
  Socket listener_;
  net::UnixName name_;
  Endpoint endpoint_;
  ListenOptions options_;
  int calls_ = 0;        ///< The callbacks that this state has invoked and that have not returned.
  int starting_ = 0;     ///< Handlers that have not reached their first suspension yet.
  bool silent_ = false;  ///< The server has been destroyed.
  std::uint64_t accepted_ = 0;
  std::uint64_t accepted_in_iteration_ = 0;  ///< The iteration of the last accept.
  /// Set if two consecutive iterations accepted a stream: more are likely pending, so the server
  /// calls accept(2) until it returns EAGAIN. A single connection is spared that extra call.
  bool in_a_row_ = false;
  bool sets_no_delay_ = false;
  std::function<Task<>(Socket)> handler_;
  std::function<void(Socket)> take_;
  net::Room room_;
  std::optional<TaskScope> handlers_;  ///< Empty after the server has been destroyed.
  TaskScope greetings_;                ///< Tasks that read PROXY headers.
  TaskScope acceptor_;
};

Result<StreamServerBase> StreamServerBase::open(EventLoop& loop, const Endpoint& at,
                                                const ListenOptions& options,
                                                const std::source_location& function) {
  loop::core_of(loop).check_thread(function);
  auto& system = loop::core_of(loop).backend().system();
  if (options.unix_mode &&
      (!net::UnixName::is_path(at) || (*options.unix_mode & ~mode_t{0777}) != 0))
    return std::unexpected(system_error(EINVAL));
  auto listener = Socket::open(loop, at.family(), SOCK_STREAM);
  if (!listener) return std::unexpected(listener.error());
  if (at.is_ip()) {
    // Allows binding while connections of a previous server on the port are in TIME_WAIT.
    if (auto set = listener->set_option(SOL_SOCKET, SO_REUSEADDR, 1); !set)
      return std::unexpected(set.error());
    if (at.family() == AF_INET6) {
      if (auto set = listener->set_option(IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0); !set)
        return std::unexpected(set.error());
    }
    if (options.reuse_port) {
      if (auto set = listener->set_option(SOL_SOCKET, SO_REUSEPORT, 1); !set)
        return std::unexpected(set.error());
    }
    if (auto set = set_no_delay(*listener); !set) return std::unexpected(set.error());
    if (auto set = net::set_tcp_options(*listener, options.tcp); !set)
      return std::unexpected(set.error());
  }
  auto name = bind_and_listen(system, listener->descriptor(), at, options);
  if (!name) return std::unexpected(name.error());
  const auto local = listener->local_endpoint();
  if (!local) return std::unexpected(local.error());
  return StreamServerBase(
      std::make_unique<State>(std::move(*listener), std::move(*name), *local, options));
}

Result<StreamServerBase> StreamServerBase::open(EventLoop& loop, UniqueFd listener,
                                                bool (*supports)(const Endpoint&),
                                                const ListenOptions& options,
                                                const std::source_location& function) {
  loop::core_of(loop).check_thread(function);
  const int fd = listener.get();
  const auto asked = [fd](int level, int option) -> Result<int> {
    int value = 0;
    socklen_t size = sizeof value;
    if (::getsockopt(fd, level, option, &value, &size) != 0) return last_error();
    return value;
  };
  const auto type = asked(SOL_SOCKET, SO_TYPE);
  const auto listens = asked(SOL_SOCKET, SO_ACCEPTCONN);
  if (!type || !listens)
    return std::unexpected(system_error(fd < 0 ? EBADF : (!type ? type : listens).error().value()));
  if (*type != SOCK_STREAM || *listens == 0) return std::unexpected(system_error(EINVAL));
  // O_NONBLOCK belongs to the open file description, so it applies to other processes that share it
  // too.
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return last_error();
  Socket socket(loop, listener.release());
  const auto local = socket.local_endpoint();
  if (!local) return std::unexpected(local.error());
  if (!supports(*local)) return std::unexpected(system_error(EAFNOSUPPORT));
  const auto no_delay = asked(IPPROTO_TCP, TCP_NODELAY);
  StreamServerBase server(
      std::make_unique<State>(std::move(socket), net::UnixName(), *local, options));
  // Connections in the backlog were established before the listener could pass TCP_NODELAY on.
  if (local->is_ip() && no_delay && *no_delay == 0) server.state_->set_no_delay_each_time();
  return server;
}

StreamServerBase::StreamServerBase(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
StreamServerBase::StreamServerBase(StreamServerBase&&) noexcept = default;
StreamServerBase::~StreamServerBase() { State::leave(state_); }

StreamServerBase& StreamServerBase::operator=(StreamServerBase&& other) noexcept {
  if (this != &other) State::leave(state_);
  state_ = std::move(other.state_);
  return *this;
}

const Endpoint& StreamServerBase::endpoint() const noexcept {
  return State::existing(state_, "endpoint").endpoint();
}
int StreamServerBase::descriptor() const noexcept {
  return State::existing(state_, "descriptor").descriptor();
}
void StreamServerBase::keep_path() noexcept { State::of(state_, "keep_path").keep_path(); }
void StreamServerBase::stop() noexcept { State::of(state_, "stop").stop(); }
Task<> StreamServerBase::shut_down(Duration grace) {
  return State::of(state_, "shut_down").shut_down(grace);
}
std::size_t StreamServerBase::connections() const noexcept {
  return State::existing(state_, "connections").connections();
}
std::uint64_t StreamServerBase::accepted() const noexcept {
  return State::existing(state_, "accepted").accepted();
}
Task<Result<Socket>> StreamServerBase::accept_socket() {
  State& state = State::of(state_, "accept");
  state.check_accepts_by_hand();
  return state.accept_socket();
}

void StreamServerBase::serve(ConnectionCallbacks callbacks) {
  State::of(state_, "serve").serve(std::move(callbacks));
}

void StreamServerBase::serve_with(std::function<Task<>(Socket)> handler) {
  State::of(state_, "serve").serve(std::move(handler));
}

}  // namespace tambour
