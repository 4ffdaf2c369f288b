// list_sockets(): asks the loops, then the kernel, in slices.
#include "inspector/sockets.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <mutex>
#include <utility>

#include <tambour/net/endpoint.h>
#include <tambour/task/sleep.h>

#include "backend/fd_records.h"
#include "inspector/json.h"
#include "loop/core.h"

namespace tambour::inspector {
namespace {

/// Takes a fraction of a millisecond.
constexpr std::size_t records_of_slice = 1024;

/// What the loops have answered to one question. Shared, because a loop may answer too late.
struct Answers {
  std::mutex mutex;
  std::vector<Watched> watched;
  std::vector<const ObservedLoop*> loops;
  std::size_t records_max = 0;  ///< Of all loops.
};

/// Runs on the thread of the loop.
void answer(const ObservedLoop& loop, std::size_t first, Answers& answers) {
  auto& backend = tambour::detail::loop::core_of(loop.loop()).backend();
  const auto* const records = backend.has_virtual_time() ? nullptr : backend.records();
  std::vector<Watched> watched;
  watched.reserve(records_of_slice);
  const std::size_t size = records != nullptr ? records->size() : 0;
  for (std::size_t fd = first; fd < std::min(size, first + records_of_slice); ++fd) {
    const auto& record = records->data()[fd];
    const auto* const operation = record.operations.front();
    if (operation == nullptr) continue;
    watched.push_back({.fd = static_cast<int>(fd),
                       .events = record.wanted().events,
                       .loop = loop.name(),
                       .place = operation->created_at()});
  }
  const std::lock_guard lock(answers.mutex);
  answers.records_max = std::max(answers.records_max, size);
  answers.loops.push_back(&loop);
  std::ranges::move(watched, std::back_inserter(answers.watched));
}

std::string_view name_of_state(int state) noexcept {
  // In the order of the kernel's enumeration, which begins with 1.
  constexpr std::array<std::string_view, 12> names = {
      "established", "syn sent",   "syn received", "fin wait 1", "fin wait 2", "time wait",
      "closed",      "close wait", "last ack",     "listen",     "closing",    "new"};
  const auto index = static_cast<std::size_t>(state) - 1;
  return index < names.size() ? names[index] : std::string_view();
}

std::string_view name_of_type(int family, int type) noexcept {
  if (family == AF_UNIX) return type == SOCK_STREAM ? "unix" : "unix datagram";
  if (family != AF_INET && family != AF_INET6) return "other";
  return type == SOCK_STREAM ? "tcp" : "udp";
}

std::string_view name_of_events(Events events) noexcept {
  const bool reads = has(events, Events::read);
  if (has(events, Events::write)) return reads ? "read and write" : "write";
  return reads ? "read" : "";
}

using GetName = int (*)(int, sockaddr*, socklen_t*);

std::string name_of_end(int fd, GetName get_name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (get_name(fd, generic, &size) != 0) return {};
  const auto endpoint = Endpoint::from(generic, size);
  return endpoint ? endpoint->to_string() : std::string();
}

int integer_option(int fd, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

std::int64_t queued_bytes(int fd, unsigned long request) noexcept {
  int bytes = 0;
  return ::ioctl(fd, request, &bytes) == 0 ? bytes : 0;
}

void describe_tcp(SocketRow& row) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(row.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  row.state = name_of_state(info.tcpi_state);
  row.rtt_us = info.tcpi_rtt;
  row.idle_ms = std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent);
  if (info.tcpi_state != TCP_LISTEN) return;
  row.backlog = info.tcpi_unacked;
  row.idle_ms = row.rtt_us = 0;
}

/// Returns false if the descriptor is no socket. Another thread may close it at any time: the row
/// is then incomplete.
bool describe(SocketRow& row) {
  const int type = integer_option(row.fd, SO_TYPE);
  if (type < 0) return false;
  const int family = integer_option(row.fd, SO_DOMAIN);
  row.type = name_of_type(family, type);
  row.local = name_of_end(row.fd, &::getsockname);
  row.peer = name_of_end(row.fd, &::getpeername);
  if (integer_option(row.fd, SO_ACCEPTCONN) > 0) row.state = "listen";
  if (row.type == "tcp") describe_tcp(row);
  if (row.state == "listen") return true;
  row.unread_bytes = queued_bytes(row.fd, SIOCINQ);
  row.unsent_bytes = queued_bytes(row.fd, SIOCOUTQ);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (family == AF_UNIX && row.peer.empty() &&
      ::getsockopt(row.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
    row.peer = "process " + std::to_string(peer.pid);
  return true;
}

bool matches(const SocketRow& row, std::string_view text) noexcept {
  return contains(row.peer, text) || contains(row.local, text) || contains(row.loop, text) ||
         contains(row.state, text) || contains(row.awaits, text) || contains(row.place, text) ||
         contains(row.type, text);
}

/// Calls `sort` with the projection of a column, and returns what it does.
template <class Sort>
auto with_column(std::string_view name, Sort sort) {
  if (name == "loop") return sort(&SocketRow::loop);
  if (name == "type") return sort(&SocketRow::type);
  if (name == "state") return sort(&SocketRow::state);
  if (name == "awaits") return sort(&SocketRow::awaits);
  if (name == "peer") return sort(&SocketRow::peer);
  if (name == "local") return sort(&SocketRow::local);
  if (name == "idle_ms") return sort(&SocketRow::idle_ms);
  if (name == "unread_bytes") return sort(&SocketRow::unread_bytes);
  if (name == "unsent_bytes") return sort(&SocketRow::unsent_bytes);
  if (name == "rtt_us") return sort(&SocketRow::rtt_us);
  if (name == "backlog") return sort(&SocketRow::backlog);
  if (name == "place") return sort(&SocketRow::place);
  return sort(&SocketRow::fd);
}

PageSelector<SocketRow> selector_of(const ListQuery& query) {
  using Selector = PageSelector<SocketRow>;
  auto is_before = with_column(query.sort, [&](auto column) -> Selector::IsBefore {
    // By descriptor among equal ones, so that pages do not overlap.
    return [column, is_descending = query.is_descending](const SocketRow& a, const SocketRow& b) {
      if (a.*column != b.*column) return (a.*column < b.*column) != is_descending;
      return a.fd < b.fd;
    };
  });
  return {query.offset, query.limit, std::move(is_before)};
}

}  // namespace

Task<std::size_t> list_watched(ObservedLoops& loops, Duration patience,
                               std::vector<Watched>& watched, std::vector<std::string>& silent) {
  std::size_t records = 1;
  for (std::size_t first = 0; first < records && !loops.empty(); first += records_of_slice) {
    const auto answers = std::make_shared<Answers>();
    auto ask = [answers, first](const std::shared_ptr<ObservedLoop>& loop,
                                const std::shared_ptr<void>& /*end*/) noexcept {
      try {
        answer(*loop, first, *answers);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the loop is silent.
      }
    };
    Task<> asking = run_on_each(loops, std::move(ask), patience);
    co_await std::move(asking);
    const std::lock_guard lock(answers->mutex);
    // Those of the next part have higher numbers.
    std::ranges::sort(answers->watched, {}, &Watched::fd);
    std::ranges::move(answers->watched, std::back_inserter(watched));
    std::erase_if(loops, [&](const std::shared_ptr<ObservedLoop>& loop) {
      const bool is_silent = std::ranges::find(answers->loops, loop.get()) == answers->loops.end();
      if (is_silent) silent.push_back(loop->name());
      return is_silent;
    });
    records = std::max(records, answers->records_max);
  }
  co_return records;
}

Task<SocketList> list_sockets(EventLoop& loop, ObservedLoops loops, Duration patience,
                              std::size_t sockets_max, ListQuery query) {
  std::vector<std::string> silent;
  std::vector<Watched> watched;
  ObservedLoops answering = loops;
  Task<std::size_t> asking = list_watched(answering, patience, watched, silent);
  const std::size_t fds_end = co_await std::move(asking);
  PlaceText place_text = [](const Watched& entry) { return text_of(entry.place); };
  Task<SocketList> describing = describe_sockets(loop, watched, fds_end, sockets_max,
                                                 std::move(query), std::move(place_text));
  SocketList list = co_await std::move(describing);
  list.silent_loops = std::move(silent);
  co_return list;
}

Task<SocketList> describe_sockets(EventLoop& loop, const std::vector<Watched>& watched,
                                  std::size_t fds_end, std::size_t sockets_max, ListQuery query,
                                  PlaceText place_text) {
  SocketList list;
  PageSelector<SocketRow> selector = selector_of(query);
  Slices slices(loop);
  auto next = watched.begin();
  for (int fd = 0; fd < static_cast<int>(fds_end); ++fd) {
    if (slices.is_over()) {
      const Result<> resumed = co_await slices.next();
      if (!resumed) break;
    }
    SocketRow row{.fd = fd};
    while (next != watched.end() && next->fd < fd) ++next;
    const bool is_watched = next != watched.end() && next->fd == fd;
    if (!describe(row)) continue;
    if (is_watched) {
      row.loop = next->loop;
      row.awaits = name_of_events(next->events);
      row.place = place_text(*next);
      row.unread_bytes += next->unread_bytes;
      row.unsent_bytes += next->unsent_bytes;
    }
    list.is_complete = list.total < sockets_max;
    if (!list.is_complete) break;
    ++list.total;
    if (query.text.empty() || matches(row, query.text)) selector.add(std::move(row));
  }
  list.matching = selector.added();
  Task<> finishing = finish_page(selector, list.rows, slices);
  co_await std::move(finishing);
  co_return list;
}

}  // namespace tambour::inspector
