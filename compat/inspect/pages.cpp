// The pages of the inspector of an unmodified program: loops, callbacks, events, connections and
// connections of evhttp.
#include "inspect/pages.h"

#include <dlfcn.h>
#include <errno.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tambour/loop/readiness.h>
#include <tambour/task/task.h>

#include "inspect/symbols.h"
#include "inspector/responses.h"
#include "inspector/sockets.h"

namespace tambour::inspect {
namespace {

using compat::LoopFigures;
using compat::ObservedEvent;
using compat::ObservedHttp;
using http::Request;
using http::Response;
using inspector::Json;
using inspector::ListQuery;
using inspector::seconds;
using inspector::SocketList;
using inspector::Watched;
using OwnLoop = std::shared_ptr<inspector::ObservedLoop>;

constexpr std::string_view views = "loops callbacks events connections evhttp";
constexpr Duration patience = std::chrono::seconds(1);
constexpr Duration stall_max = std::chrono::seconds(5);
constexpr std::size_t events_max = 100'000;  ///< Of all loops; further ones are not listed.

/// An event as the loop has described it.
struct FoundEvent {
  ObservedEvent event{};
  std::optional<ObservedHttp> http{};
  const ProgramLoop* loop = nullptr;
};

/// What the loops have answered to one question. Shared, because a loop may answer too late.
struct Answers {
  std::mutex mutex;
  std::vector<FoundEvent> events;
  std::map<const ProgramLoop*, LoopFigures> figures;
  bool is_complete = true;
};

/// Null if the program has not loaded libevent_extra.
compat::DescribeHttp describe_http() noexcept {
  return reinterpret_cast<compat::DescribeHttp>(::dlsym(RTLD_DEFAULT, "tambour_describe_evhttp_1"));
}

/// Runs on the thread of the loop.
void list_events_of(const ProgramLoop& loop, Answers& answers) {
  struct Listing {
    const ProgramLoop& loop;
    std::vector<FoundEvent> events;
    compat::DescribeHttp describe = describe_http();
    bool is_complete = true;
  } listing{.loop = loop, .events = {}};
  loop.list(
      [](void* data, const ObservedEvent& event) noexcept {
        auto& to = *static_cast<Listing*>(data);
        try {
          to.is_complete = to.is_complete && to.events.size() < events_max;
          if (!to.is_complete) return;
          FoundEvent& found = to.events.emplace_back(event, std::nullopt, &to.loop);
          ObservedHttp http{};
          if (event.bufferevent != nullptr && to.describe != nullptr &&
              to.describe(event.bufferevent, http))
            found.http = http;
        } catch (const std::exception&) {
          to.is_complete = false;
        }
      },
      &listing);
  const std::lock_guard lock(answers.mutex);
  const std::size_t room = events_max - std::min(events_max, answers.events.size());
  if (listing.events.size() > room) listing.events.resize(room);
  answers.is_complete = answers.is_complete && listing.is_complete;
  std::ranges::move(listing.events, std::back_inserter(answers.events));
}

/// Asks all loops. `ask(loop, answers)` runs on the threads of the loops.
template <class Ask>
Task<std::shared_ptr<Answers>> ask_loops(ProgramLoops loops, Ask ask) {
  auto answers = std::make_shared<Answers>();
  auto run = [answers, ask](const std::shared_ptr<ProgramLoop>& loop,
                            const std::shared_ptr<void>& /*end*/) noexcept {
    try {
      ask(*loop, *answers);
      LoopFigures figures;
      loop->read(figures);
      const std::lock_guard lock(answers->mutex);
      answers->figures[loop.get()] = figures;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the loop is silent.
    }
  };
  Task<> asking = inspector::run_on_each(std::move(loops), std::move(run), patience);
  co_await std::move(asking);
  co_return answers;
}

/// How long the callback that runs has taken; zero if the loop waits.
std::int64_t running_ns(const ProgramLoop& loop) noexcept {
  const std::int64_t since_ns = loop.running_since_ns.load(std::memory_order_relaxed);
  return since_ns == 0 ? 0 : std::max<std::int64_t>(detail::base::monotonic_ns() - since_ns, 0);
}

std::string text_of_running(const ProgramLoop& loop) {
  return text_of_function(loop.running.load(std::memory_order_relaxed));
}

// A loop that does not answer is shown with what it has published.
void append_loop(Json& json, const ProgramLoop& loop, const LoopFigures* figures) {
  const std::int64_t ns = running_ns(loop);
  json.begin_object()
      .member("name", loop.name())
      .member("iterations", loop.iterations.get())
      .member("callbacks", loop.callbacks.get())
      .member("callback_seconds", seconds(loop.callback_ns.get()))
      .member("lag_max_seconds", seconds(loop.lag_max_ns.get()))
      .member("stalls", loop.call_times.stalls())
      .member("running_seconds", seconds(ns))
      .member("running", ns > 0 ? text_of_running(loop) : std::string());
  if (figures != nullptr) {
    json.member("timers", figures->timers)
        .member("pending", figures->pending)
        .member("references", figures->references);
  }
  append_lags(json, loop.lags.read());
  json.end_object();
}

Task<> send_loops(Program& program, Response& response) {
  const ProgramLoops loops = program.loops();
  auto ask = ask_loops(loops, [](const ProgramLoop&, Answers&) {});
  const std::shared_ptr<Answers> answers = co_await std::move(ask);
  Json json;
  inspector::begin_loops(json, ::program_invocation_short_name, views);
  const std::lock_guard lock(answers->mutex);
  for (const auto& loop : loops) {
    const auto found = answers->figures.find(loop.get());
    append_loop(json, *loop, found != answers->figures.end() ? &found->second : nullptr);
  }
  json.end_array().end_object();
  inspector::send_json(response, json);
}

void send_callbacks(const Program& program, Response& response) {
  std::map<std::string, inspector::CallTotals> places;
  for (const auto& loop : program.loops()) {
    for (const auto& times : loop->call_times.rows())
      places[text_of_function(times.place)].add(times);
  }
  inspector::send_callbacks(response, places);
}

std::string_view name_of_events(std::uint16_t bits) noexcept {
  const auto events = Events(bits);
  const bool reads = has(events, Events::read);
  if (has(events, Events::write)) return reads ? "read and write" : "write";
  return reads ? "read" : "";
}

struct EventRow {
  const FoundEvent* found = nullptr;
  std::string function{};
};

struct EventList {
  std::vector<EventRow> rows{};
  std::size_t matching = 0;
  std::size_t total = 0;
  std::vector<std::string> silent_loops{};
  bool is_complete = true;
};

bool matches(const EventRow& row, std::string_view text) noexcept {
  const ObservedEvent& event = row.found->event;
  return inspector::contains(row.function, text) || inspector::contains(event.kind, text) ||
         inspector::contains(row.found->loop->name(), text) ||
         inspector::contains(name_of_events(event.awaited_events), text);
}

/// The rows refer to `answers`.
EventList list_of(const ProgramLoops& loops, const Answers& answers, std::string_view text) {
  EventList list{.total = answers.events.size(), .is_complete = answers.is_complete};
  std::unordered_map<const void*, std::string> names;
  for (const FoundEvent& found : answers.events) {
    const auto [name, is_new] = names.try_emplace(found.event.function);
    if (is_new) name->second = text_of_function(found.event.function);
    EventRow row{.found = &found, .function = name->second};
    if (text.empty() || matches(row, text)) list.rows.push_back(std::move(row));
  }
  list.matching = list.rows.size();
  for (const auto& loop : loops) {
    if (!answers.figures.contains(loop.get())) list.silent_loops.push_back(loop->name());
  }
  return list;
}

/// The rows of the chosen page. Only they are sorted, so that this takes linear time.
template <class IsBefore>
std::vector<const EventRow*> select_page(const std::vector<EventRow>& rows, const ListQuery& query,
                                         IsBefore is_before) {
  std::vector<const EventRow*> chosen;
  chosen.reserve(rows.size());
  for (const EventRow& row : rows) chosen.push_back(&row);
  const auto begin =
      chosen.begin() + static_cast<std::ptrdiff_t>(std::min(query.offset, rows.size()));
  const auto end = begin + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(query.limit),
                                                    chosen.end() - begin);
  if (begin != chosen.end()) std::nth_element(chosen.begin(), begin, chosen.end(), is_before);
  if (end != chosen.end()) std::nth_element(begin, end, chosen.end(), is_before);
  std::sort(begin, end, is_before);
  return {begin, end};
}

std::vector<const EventRow*> select_events(const EventList& list, const ListQuery& query) {
  const auto select = [&](auto key) {
    return select_page(list.rows, query, [&](const EventRow* a, const EventRow* b) {
      const auto x = key(*a);
      const auto y = key(*b);
      if (x != y) return (x < y) != query.is_descending;
      return a < b;
    });
  };
  if (query.sort == "function")
    return select([](const EventRow& row) -> std::string_view { return row.function; });
  if (query.sort == "kind")
    return select([](const EventRow& row) { return std::string_view(row.found->event.kind); });
  if (query.sort == "due_seconds")
    return select([](const EventRow& row) { return row.found->event.due_ns; });
  if (query.sort == "priority")
    return select([](const EventRow& row) { return row.found->event.priority; });
  if (query.sort == "unread_bytes")
    return select([](const EventRow& row) { return row.found->event.unread_bytes; });
  if (query.sort == "unsent_bytes")
    return select([](const EventRow& row) { return row.found->event.unsent_bytes; });
  if (query.sort == "fd") return select([](const EventRow& row) { return row.found->event.fd; });
  return select([](const EventRow&) { return 0; });
}

void append_event(Json& json, const EventRow& row) {
  const ObservedEvent& event = row.found->event;
  json.begin_object()
      .member("loop", row.found->loop->name())
      .member("kind", event.kind)
      .member("fd", event.fd)
      .member("awaits", name_of_events(event.awaited_events))
      .member("due_seconds", event.due_ns < 0 ? -1. : seconds(event.due_ns))
      .member("priority", event.priority)
      .member("is_due", event.is_due)
      .member("unread_bytes", event.unread_bytes)
      .member("unsent_bytes", event.unsent_bytes)
      .member("function", row.function)
      .end_object();
}

Task<> send_events(Program& program, Request& request, Response& response) {
  const std::optional<ListQuery> query = inspector::query_of(request);
  if (!query) co_return;
  const ProgramLoops loops = program.loops();
  auto ask = ask_loops(loops, &list_events_of);
  const std::shared_ptr<Answers> answers = co_await std::move(ask);
  const std::lock_guard lock(answers->mutex);
  const EventList list = list_of(loops, *answers, query->text);
  Json json;
  inspector::begin_list(json, list, query->offset);
  json.key("events").begin_array();
  for (const EventRow* row : select_events(list, *query)) append_event(json, *row);
  json.end_array().end_object();
  inspector::send_json(response, json);
}

/// What the events say about descriptors, by descriptor; a bufferevent has two events.
std::vector<Watched> watched_by(const Answers& answers) {
  std::map<int, Watched> found;
  for (const FoundEvent& entry : answers.events) {
    const ObservedEvent& event = entry.event;
    if (event.fd < 0 || std::string_view(event.kind) == "signal") continue;
    Watched& watched = found[event.fd];
    watched.fd = event.fd;
    watched.events |= Events(event.awaited_events);
    watched.loop = entry.loop->name();
    watched.function = event.function;
    watched.unread_bytes = static_cast<std::int64_t>(event.unread_bytes);
    watched.unsent_bytes = static_cast<std::int64_t>(event.unsent_bytes);
  }
  std::vector<Watched> list;
  list.reserve(found.size());
  for (const auto& [fd, watched] : found) list.push_back(watched);
  return list;
}

Task<> send_connections(Program& program, OwnLoop inspector_loop, Request& request,
                        Response& response) {
  const std::optional<ListQuery> query = inspector::query_of(request);
  if (!query) co_return;
  const ProgramLoops loops = program.loops();
  auto ask = ask_loops(loops, &list_events_of);
  const std::shared_ptr<Answers> answers = co_await std::move(ask);
  std::vector<Watched> watched;
  std::vector<std::string> silent;
  {
    const std::lock_guard lock(answers->mutex);
    watched = watched_by(*answers);
    silent = list_of(loops, *answers, "").silent_loops;
  }
  inspector::ObservedLoops inspector_loops(1, inspector_loop);
  auto listing = inspector::list_watched(inspector_loops, patience, watched, silent);
  const std::size_t inspector_end = co_await std::move(listing);
  std::ranges::sort(watched, {}, &Watched::fd);
  const std::size_t last = watched.empty() ? 0 : static_cast<std::size_t>(watched.back().fd);
  auto place_text = [](const Watched& entry) {
    return entry.function != nullptr ? text_of_function(entry.function)
                                     : inspector::text_of(entry.place);
  };
  auto describing = inspector::describe_sockets(request.connection().loop(), watched,
                                                std::max(inspector_end, last + 1), events_max,
                                                *query, std::move(place_text));
  SocketList list = co_await std::move(describing);
  list.silent_loops = std::move(silent);
  auto sending = inspector::send_sockets(request, response, list, query->offset);
  co_await std::move(sending);
}

Task<> send_evhttp(Program& program, Response& response) {
  const ProgramLoops loops = program.loops();
  auto ask = ask_loops(loops, &list_events_of);
  const std::shared_ptr<Answers> answers = co_await std::move(ask);
  const std::lock_guard lock(answers->mutex);
  std::set<const void*> listed;
  Json json;
  json.begin_object().key("connections").begin_array();
  for (const FoundEvent& found : answers->events) {
    if (!found.http || !listed.insert(found.event.bufferevent).second) continue;
    if (listed.size() > inspector::rows_max) break;
    json.begin_object()
        .member("loop", found.loop->name())
        .member("fd", found.event.fd)
        .member("peer", std::string(found.http->peer) + ':' + std::to_string(found.http->port))
        .member("side", found.http->is_server ? "server" : "client")
        .member("state", found.http->state)
        .member("method", found.http->method)
        .member("unread_bytes", found.event.unread_bytes)
        .member("unsent_bytes", found.event.unsent_bytes)
        .end_object();
  }
  json.end_array().end_object();
  inspector::send_json(response, json);
}

void send_health(const Program& program, Response& response) {
  Json blocked;
  bool is_blocked = false;
  blocked.begin_array();
  for (const auto& loop : program.loops()) {
    const std::int64_t ns = running_ns(*loop);
    if (ns <= stall_max.count()) continue;
    is_blocked = true;
    blocked.begin_object()
        .member("loop", loop->name())
        .member("running", text_of_running(*loop))
        .member("seconds", seconds(ns))
        .end_object();
  }
  blocked.end_array();
  inspector::send_health(response, is_blocked, blocked);
}

}  // namespace

http::Router make_pages(Program& program, OwnLoop inspector_loop) {
  http::Router router;
  router.use(inspector::access_check({}));
  inspector::add_page(router);
  router
      .get("/loops",
           [&program](Request&, Response& response) { return send_loops(program, response); })
      .get("/callbacks",
           [&program](Request&, Response& response) { send_callbacks(program, response); })
      .get("/events",
           [&program](Request& request, Response& response) {
             return send_events(program, request, response);
           })
      .get("/connections",
           [&program, inspector_loop = std::move(inspector_loop)](Request& request,
                                                                  Response& response) {
             return send_connections(program, inspector_loop, request, response);
           })
      .get("/evhttp",
           [&program](Request&, Response& response) { return send_evhttp(program, response); })
      .get("/health", [&program](Request&, Response& response) { send_health(program, response); })
      .get("/ready",
           [](Request&, Response& response) { inspector::send_ready(response, true, false); });
  return router;
}

}  // namespace tambour::inspect
