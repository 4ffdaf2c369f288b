// Named functions with co_await in every kind of condition. GCC 12 compiles those marked with
// `// frame` so that they cannot be resumed; the library then aborts with a message that names the
// function. The marks are also what tambour-check-coroutines has to find. The other shapes work
// with every compiler.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

namespace {

/// True `left` times, after a wait each.
Task<bool> more(int& left) {
  const Result<> slept = co_await sleep_for(Duration::zero());
  co_return slept&& left-- > 0;
}

int steps = 0;

Task<> free_if(int left) {
  if (!co_await more(left)) co_return;  // frame
  ++steps;
}
Task<> free_while(int left) {
  while (co_await more(left)) ++steps;  // frame
}
Task<> free_do(int left) {
  do ++steps;  // frame
  while (co_await more(left));
}
Task<> free_for(int left) {
  for (; co_await more(left); ++steps) continue;  // frame
}
Task<> free_switch(int left) {
  switch (co_await more(left)) {  // frame
    case true:
      ++steps;
      break;
    case false:
      break;
  }
}
Task<> free_else_if(int left) {
  if (left < 0) {
    ++steps;
  } else if (co_await more(left)) {  // frame
    ++steps;
  }
}
Task<> free_nested(int left) {
  if (left > 0) {
    while (left > 0) {
      if (co_await more(left)) ++steps;  // frame
    }
  }
}
Task<> free_block(int left) {
  {
    if (co_await more(left)) ++steps;  // frame
  }
}
Task<> free_try(int left) {
  try {
    if (co_await more(left)) ++steps;  // frame
  } catch (...) {
  }
}
Task<> free_and(int left) {
  if (left > 0 && co_await more(left)) ++steps;  // frame
}
Task<> free_or(int left) {
  if (left < 0 || co_await more(left)) ++steps;  // frame
}
Task<> free_assertion(int left) {
  static_assert(sizeof(int) > 1);
  if (co_await more(left)) ++steps;  // frame
}
/// The values of nine conditions take two words, so the alignment of the frame looks right.
Task<> free_nine(int left) {
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  if (!co_await more(left)) co_return;  // frame
  ++steps;
}
Task<Result<int>> free_result(int left) {
  while (co_await more(left)) ++steps;  // frame
  co_return steps;
}

struct Class {
  Task<> member_if(int left) {
    if (co_await more(left)) ++steps;  // frame
  }
  static Task<> static_while(int left) {
    while (co_await more(left)) ++steps;  // frame
  }
  template <class T>
  Task<> template_member(T left) {
    if (co_await more(left)) ++steps;  // frame
  }
  virtual Task<> virtual_if(int left) {
    if (co_await more(left)) ++steps;  // frame
  }
  virtual ~Class() = default;
};

template <class T>
Task<> template_while(T left) {
  while (co_await more(left)) ++steps;  // frame
}

Task<> safe_variable(int left) {
  const bool first = co_await more(left);
  if (!first) co_return;
  while (co_await more(left)) ++steps;
  ++steps;
}
Task<> safe_inner_variable(int left) {
  while (co_await more(left)) {
    const int added = 1;
    steps += added;
  }
}
Task<> safe_declaration(int left) {
  if (const bool more_left = co_await more(left)) steps += int{more_left};
}
Task<> safe_for(int left) {
  for (int i = 0; co_await more(left); ++i) ++steps;
}
Task<> safe_statement(int left) {
  static_cast<void>(co_await more(left));
  ++steps;
}
Task<bool> return_value(int left) { co_return co_await more(left); }
Task<bool> return_and(int left) { co_return left > 0 && co_await more(left); }
Task<> safe_return(int left) {
  const bool both = co_await return_value(left);
  const bool last = co_await return_and(left);
  if (both && last) ++steps;
}
Task<> safe_type(int left) {
  using Step = int;
  if (co_await more(left)) steps += Step{1};
}
Task<> safe_lambda(int left) {
  const auto run = [](int count) -> Task<> {
    if (co_await more(count)) ++steps;
  };
  co_await run(left);
}

struct Shape {
  const char* name;
  bool misplaced;
  Task<> (*start)(int);
};

Class object;

template <auto function>
Task<> of(int left) {
  return function(left);
}
template <auto member>
Task<> of_member(int left) {
  return (object.*member)(left);
}

const Shape shapes[] = {
    {"free_if", true, of<free_if>},
    {"free_while", true, of<free_while>},
    {"free_do", true, of<free_do>},
    {"free_for", true, of<free_for>},
    {"free_switch", true, of<free_switch>},
    {"free_else_if", true, of<free_else_if>},
    {"free_nested", true, of<free_nested>},
    {"free_block", true, of<free_block>},
    {"free_try", true, of<free_try>},
    {"free_and", true, of<free_and>},
    {"free_or", true, of<free_or>},
    {"free_assertion", true, of<free_assertion>},
    {"free_nine", true, of<free_nine>},
    {"free_result", true,
     [](int left) -> Task<> { static_cast<void>(co_await free_result(left)); }},
    {"member_if", true, of_member<&Class::member_if>},
    {"static_while", true, of<&Class::static_while>},
    {"template_member", true, of_member<&Class::template_member<int>>},
    {"virtual_if", true, of_member<&Class::virtual_if>},
    {"template_while", true, of<template_while<int>>},
    {"safe_variable", false, of<safe_variable>},
    {"safe_inner_variable", false, of<safe_inner_variable>},
    {"safe_declaration", false, of<safe_declaration>},
    {"safe_for", false, of<safe_for>},
    {"safe_statement", false, of<safe_statement>},
    {"safe_return", false, of<safe_return>},
    {"safe_type", false, of<safe_type>},
    {"safe_lambda", false, of<safe_lambda>},
};

/// Runs in a process of its own: the exit status is 0 if the coroutine has run to its end.
int run(const Shape& shape) {
  EventLoop loop;
  int ended = 0;
  spawn(
      loop,
      [&](const Shape& started) -> Task<> {
        co_await started.start(9);
        ++ended;
      },
      shape);
  loop.run();
  return ended == 1 && steps > 0 ? 0 : 1;
}

/// Returns the wait status of the process, and what it wrote to stderr.
int outcome_of(const Shape& shape, std::string& text) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::dup2(ends[1], STDERR_FILENO);
    std::_Exit(run(shape));
  }
  ::close(ends[1]);
  char bytes[1024];
  for (ssize_t got; (got = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) std::abort();
  return status;
}

}  // namespace

int main() {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
  constexpr bool misplaces = true;
#else
  constexpr bool misplaces = false;
#endif
  int failures = 0;
  for (const Shape& shape : shapes) {
    std::string text;
    const int status = outcome_of(shape, text);
    const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                         text.find("GCC 12 has compiled") != std::string::npos &&
                         text.find(std::string(shape.name) + " (") != std::string::npos;
    const bool right = misplaces && shape.misplaced ? aborted : status == 0;
    if (right) continue;
    std::printf("%s: wait status %d: %s\n", shape.name, status, text.c_str());
    ++failures;
  }
  std::printf("%zu shapes, %d failures\n", std::size(shapes), failures);
  return failures == 0 ? 0 : 1;
}
