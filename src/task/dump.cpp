// Dumps of tasks as text and as JSON.
#include <tambour/task/dump.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "loop/core.h"

namespace tambour {
namespace {

void append_address(std::string& to, const void* address) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%" PRIxPTR, reinterpret_cast<std::uintptr_t>(address));
  to += text.data();
}

void append_seconds(std::string& to, Duration time) {
  std::array<char, 32> text;
  const std::int64_t milliseconds = time.count() / 1'000'000;
  std::snprintf(text.data(), text.size(), "%" PRId64 ".%03d", milliseconds / 1000,
                static_cast<int>(milliseconds % 1000));
  to += text.data();
}

void append_place(std::string& to, const std::source_location& place) {
  to += place.file_name();
  to += ':';
  to += std::to_string(place.line());
}

/// The name in a signature, without the types of the result and of the parameters. GCC names the
/// function that resumes the coroutine: "void serve(serve(TcpStream)::_Z5serve9TcpStream.Frame*)".
std::string_view function_of(std::string_view signature) noexcept {
  std::size_t begin = 0;
  int depth = 0;  // Of template arguments.
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth != 0) continue;
    constexpr std::string_view unnamed = "(anonymous namespace)";  // Of clang.
    if (signature.substr(i).starts_with(unnamed)) {
      i += unnamed.size() - 1;
      continue;
    }
    if (c == ' ') begin = i + 1;
    if (c == '(' && i != begin) return signature.substr(begin, i - begin);
  }
  return signature;
}

void append_wait(std::string& to, const TaskSnapshot& task) {
  to += name_of(task.awaits);
  if (task.fd >= 0) {
    to += " of fd ";
    to += std::to_string(task.fd);
  }
  if (task.object != nullptr) {
    to += ' ';
    append_address(to, task.object);
  }
  if (task.time_left) {
    to += ", ";
    append_seconds(to, *task.time_left);
    to += " s left";
  }
}

bool is_timed(WaitKind kind) noexcept {
  return kind != WaitKind::unknown && kind != WaitKind::running && kind != WaitKind::task &&
         kind != WaitKind::tasks;
}

void append_text(std::string& to, const TaskSnapshot& task) {
  if (task.depth == 0) {
    to += "task ";
    append_address(to, task.task);
    if (task.spawned_at.line() != 0) {
      to += ", spawned at ";
      append_place(to, task.spawned_at);
    }
    to += '\n';
  }
  // Deeper ones are aligned, so that the size of a dump is linear in the number of tasks.
  constexpr std::size_t depth_max = 20;
  to.append(2 * (1 + (task.depth < depth_max ? task.depth : depth_max)), ' ');
  append_wait(to, task);
  if (is_timed(task.awaits)) {
    to += ", for ";
    append_seconds(to, task.waited);
    to += " s";
  }
  if (task.awaits_at.line() != 0 && task.awaits != WaitKind::running) {
    to += ", at ";
    append_place(to, task.awaits_at);
    to += " in ";
    to += function_of(task.awaits_at.function_name());
    to += "()";
  }
  to += '\n';
}

void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') to += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) to += c;
  }
  to += '"';
}

void append_json_place(std::string& to, std::string_view name, const std::source_location& place) {
  to += ",\"";
  to += name;
  if (place.line() == 0) {
    to += "\":null";
    return;
  }
  to += "\":";
  std::string text;
  append_place(text, place);
  append_quoted(to, text);
}

void append_json_address(std::string& to, std::string_view name, const void* address) {
  to += '"';
  to += name;
  to += "\":";
  if (address == nullptr) {
    to += "null";
    return;
  }
  to += '"';
  append_address(to, address);
  to += '"';
}

/// Calls `append(task)` for the tasks of the loop. Returns false if there are further ones.
bool for_each_task(EventLoop& loop, std::size_t tasks_max, auto append) {
  TaskWalk walk(loop);
  std::size_t count = 0;
  for (;;) {
    const std::vector<TaskSnapshot> tasks = walk.next();
    if (tasks.empty()) return true;
    for (const TaskSnapshot& task : tasks) {
      if (count++ == tasks_max) return false;
      append(task);
    }
  }
}

}  // namespace

std::string_view name_of(WaitKind kind) noexcept {
  constexpr auto names = std::to_array<std::string_view>(
      {"unknown", "running", "task",   "tasks", "sleep",     "readiness", "read",    "write",
       "accept",  "connect", "event",  "mutex", "semaphore", "send",      "receive", "join",
       "process", "file",    "worker", "loop",  "callback",  "other"});
  static_assert(names.size() == static_cast<std::size_t>(WaitKind::other) + 1);
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : names[0];
}

std::string dump_tasks(EventLoop& loop, const TaskDumpOptions& options) {
  std::string text = "tasks of the loop that was created at ";
  append_place(text, detail::loop::core_of(loop).created_at());
  text += '\n';
  const bool is_complete = for_each_task(
      loop, options.tasks_max, [&text](const TaskSnapshot& task) { append_text(text, task); });
  if (!is_complete) text += "further tasks\n";
  return text;
}

std::string dump_tasks_as_json(EventLoop& loop, const TaskDumpOptions& options) {
  std::string text = "{\"loop\":";
  std::string place;
  append_place(place, detail::loop::core_of(loop).created_at());
  append_quoted(text, place);
  text += ",\"tasks\":[";
  bool is_first = true;
  const bool is_complete = for_each_task(loop, options.tasks_max, [&](const TaskSnapshot& task) {
    text += is_first ? "\n" : ",\n";
    is_first = false;
    append_json(text, task);
  });
  text += "],\n\"complete\":";
  text += is_complete ? "true}\n" : "false}\n";
  return text;
}

void append_json(std::string& to, const TaskSnapshot& task) {
  to += '{';
  append_json_address(to, "task", task.task);
  to += ',';
  append_json_address(to, "parent", task.parent);
  to += ",\"depth\":";
  to += std::to_string(task.depth);
  append_json_place(to, "spawned_at", task.spawned_at);
  to += ",\"awaits\":\"";
  to += name_of(task.awaits);
  to += '"';
  append_json_place(to, "awaits_at", task.awaits_at);
  if (task.awaits_at.line() != 0) {
    to += ",\"function\":";
    append_quoted(to, function_of(task.awaits_at.function_name()));
  }
  if (is_timed(task.awaits)) {
    to += ",\"waited_seconds\":";
    append_seconds(to, task.waited);
  }
  if (task.fd >= 0) {
    to += ",\"fd\":";
    to += std::to_string(task.fd);
  }
  if (task.object != nullptr) {
    to += ',';
    append_json_address(to, "object", task.object);
  }
  if (task.time_left) {
    to += ",\"seconds_left\":";
    append_seconds(to, *task.time_left);
  }
  to += '}';
}

}  // namespace tambour
