/* A program that maps libevent-2.1 and libevent_core-2.1 at once finds one state in both, and a
   function that is not implemented says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_compat.h>

typedef void (*function)(void);

static function in(const char* library, const char* symbol) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  function found;
  *(void**)&found = handle == NULL ? NULL : dlsym(handle, symbol);
  return found;
}

static int check(int holds, const char* what) {
  if (!holds) printf("does not hold: %s\n", what);
  return holds;
}

static int not_implemented_aborts(void) {
  char text[128] = "";
  int ends[2], status;
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const function missing = in("libevent_core-2.1.so.7", "evbuffer_chain_pin_");
    dup2(ends[1], STDERR_FILENO);
    missing();
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], text, sizeof text - 1) < 0) return 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
         strstr(text, "evbuffer_chain_pin_") != NULL;
}

int main(void) {
  struct event_base* const base = event_init();
  const char* const all = "libevent-2.1.so.7";
  const char* (*method)(void) = (const char* (*)(void))in(all, "event_get_method");
  const function add = in(all, "event_add");
  int good = check(base != NULL, "event_init()");
  good &= check(method != NULL && strcmp(method(), "epoll") == 0, "the base is known to the other");
  good &= check(add == in("libevent_core-2.1.so.7", "event_add"), "one event_add");
  good &= check(in(all, "evhttp_new") == in("libevent_extra-2.1.so.7", "evhttp_new"), "one evhttp");
  good &= check(not_implemented_aborts(), "a missing function aborts with its name");
  event_base_free(base);
  return good ? 0 : 1;
}
