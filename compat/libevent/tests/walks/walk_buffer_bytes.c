/* Adding, moving, removing and inspecting bytes. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "walk_buffer.h"

static void add_and_remove(void) {
  struct evbuffer* b = evbuffer_new();
  char into[64];
  show("new", b);
  SAY(evbuffer_get_contiguous_space(b));
  SAY(evbuffer_add(b, "hello", 5));
  SAY(evbuffer_add(b, " world", 6));
  SAY(evbuffer_add(b, NULL, 0));
  show("added", b);
  SAY(evbuffer_prepend(b, ">>", 2));
  SAY(evbuffer_prepend(b, NULL, 0));
  show("prepended", b);
  SAY(evbuffer_remove(b, into, 4));
  say("  %.4s", into);
  SAY(evbuffer_remove(b, into, 0));
  SAY(evbuffer_remove(b, into, sizeof into));
  say("  %.9s", into);
  SAY(evbuffer_remove(b, into, sizeof into));
  SAY(evbuffer_drain(b, 10));
  SAY(evbuffer_add(b, "abc", 3));
  SAY(evbuffer_drain(b, 1));
  SAY(evbuffer_drain(b, 0));
  show("drained", b);
  SAY(evbuffer_drain(b, 1000));
  show("drained", b);
  evbuffer_free(b);
}

static void large(void) {
  enum { size = 100000 };
  char* bytes = malloc(size);
  char* back = malloc(size);
  struct evbuffer* b = evbuffer_new();
  int i;
  for (i = 0; i < size; ++i) bytes[i] = (char)(i * 7 + i / 251);
  SAY(evbuffer_add(b, bytes, size));
  SAY(evbuffer_prepend(b, bytes, size));
  SAY(evbuffer_get_length(b));
  SAY(evbuffer_remove(b, back, size));
  SAY(memcmp(back, bytes, size));
  SAY(memcmp(evbuffer_pullup(b, -1), bytes, size));
  for (i = 0; i < 1000; ++i) evbuffer_add(b, bytes + i, 100);
  SAY(evbuffer_get_length(b));
  SAY(evbuffer_drain(b, size + 99950));
  SAY(memcmp(evbuffer_pullup(b, 50), bytes + 999 + 50, 50));
  evbuffer_free(b);
  free(bytes);
  free(back);
}

static int print_list(struct evbuffer* b, const char* format, ...) {
  int n;
  va_list arguments;
  va_start(arguments, format);
  n = evbuffer_add_vprintf(b, format, arguments);
  va_end(arguments);
  return n;
}

static void formatted(void) {
  struct evbuffer* b = evbuffer_new();
  char wide[5000];
  memset(wide, 'w', sizeof wide - 1);
  wide[sizeof wide - 1] = '\0';
  SAY(evbuffer_add_printf(b, "%d, %s", 42, "text"));
  SAY(evbuffer_add_printf(b, "%s", ""));
  SAY(print_list(b, " %c%5.2f", 'x', 3.14159));
  show("formatted", b);
  SAY(evbuffer_add_printf(b, "%s|%s", wide, wide));
  SAY(evbuffer_get_length(b));
  SAY(evbuffer_drain(b, 17));
  SAY(strspn((char*)evbuffer_pullup(b, 4999), "w"));
  evbuffer_free(b);
}

static void move(void) {
  struct evbuffer *a = make("aaaa"), *b = make("bbbb"), *e = evbuffer_new();
  SAY(evbuffer_add_buffer(a, b));
  show("a", a);
  show("b", b);
  SAY(evbuffer_add_buffer(a, e));
  SAY(evbuffer_add_buffer(a, a));
  SAY(evbuffer_prepend_buffer(a, a));
  SAY(evbuffer_prepend_buffer(a, e));
  SAY(evbuffer_prepend_buffer(e, a));
  show("e", e);
  evbuffer_add(a, "123", 3);
  SAY(evbuffer_prepend_buffer(e, a));
  show("e", e);
  SAY(evbuffer_remove_buffer(e, b, 5));
  show("b", b);
  show("e", e);
  SAY(evbuffer_remove_buffer(e, b, 0));
  SAY(evbuffer_remove_buffer(e, e, 3));
  SAY(evbuffer_remove_buffer(e, b, 100));
  SAY(evbuffer_remove_buffer(e, b, 100));
  show("b", b);
  SAY(evbuffer_add(e, "again", 5));
  show("e", e);
  evbuffer_free(a);
  evbuffer_free(b);
  evbuffer_free(e);
}

static void move_chains(void) {
  struct evbuffer *a = evbuffer_new(), *b = make("start ");
  refer(a, "one ");
  refer(a, "two ");
  refer(a, "three ");
  SAY(evbuffer_remove_buffer(a, b, 8));
  show("a", a);
  show("b", b);
  SAY(evbuffer_peek(b, -1, NULL, NULL, 0));
  SAY(evbuffer_remove_buffer(a, b, 3));
  show("a", a);
  show("b", b);
  SAY(evbuffer_remove_buffer(a, b, 3));
  show("a", a);
  show("b", b);
  evbuffer_free(a);
  evbuffer_free(b);
}

static void pull_up(void) {
  struct evbuffer* b = evbuffer_new();
  SAY(evbuffer_pullup(b, -1) == NULL);
  SAY(evbuffer_pullup(b, 0) == NULL);
  SAY(evbuffer_pullup(b, 1) == NULL);
  refer(b, "one");
  refer(b, "two");
  refer(b, "three");
  SAY(evbuffer_get_contiguous_space(b));
  SAY(evbuffer_pullup(b, 0) == NULL);
  say("  %.2s", (char*)evbuffer_pullup(b, 2));
  SAY(evbuffer_get_contiguous_space(b));
  say("  %.5s", (char*)evbuffer_pullup(b, 5));
  SAY(evbuffer_get_contiguous_space(b));
  SAY(evbuffer_peek(b, -1, NULL, NULL, 0));
  SAY(evbuffer_pullup(b, 12) == NULL);
  SAY(evbuffer_get_contiguous_space(b));
  say("  %.11s", (char*)evbuffer_pullup(b, -1));
  SAY(evbuffer_get_contiguous_space(b));
  SAY(evbuffer_peek(b, -1, NULL, NULL, 0));
  show("b", b);
  evbuffer_free(b);
}

static void copy_out(void) {
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_ptr at;
  char into[32] = "";
  SAY(evbuffer_copyout(b, into, 4));
  refer(b, "one");
  refer(b, "two");
  refer(b, "three");
  SAY(evbuffer_copyout(b, into, 0));
  SAY(evbuffer_copyout(b, into, 4));
  say("  %.4s", into);
  SAY(evbuffer_copyout(b, into, 32));
  say("  %.11s", into);
  SAY(evbuffer_ptr_set(b, &at, 5, EVBUFFER_PTR_SET));
  SAY(evbuffer_copyout_from(b, &at, into, 3));
  say("  %.3s", into);
  SAY(evbuffer_copyout_from(b, &at, into, 32));
  say("  %.6s", into);
  SAY(evbuffer_ptr_set(b, &at, 11, EVBUFFER_PTR_SET));
  SAY(evbuffer_copyout_from(b, &at, into, 3));
  SAY(evbuffer_copyout_from(b, NULL, into, 3));
  SAY(evbuffer_get_length(b));
  evbuffer_free(b);
}

static void vectors(void) {
  struct evbuffer* b = make("start ");
  struct evbuffer_iovec in[3] = {{"one ", 4}, {"", 0}, {"two ", 4}};
  SAY(evbuffer_add_iovec(b, in, 3));
  SAY(evbuffer_add_iovec(b, in, 0));
  SAY(evbuffer_add_iovec(b, NULL, 0));
  SAY(evbuffer_add_iovec(b, in, -1));
  show("b", b);
  evbuffer_free(b);
}

static void say_peek(struct evbuffer* b, ev_ssize_t size, struct evbuffer_ptr* at, int count) {
  struct evbuffer_iovec out[4];
  int i, n;
  memset(out, 0, sizeof out);
  n = evbuffer_peek(b, size, at, count ? out : NULL, count);
  say("  peek %zd, %d extents = %d", size, count, n);
  for (i = 0; i < n && i < count; ++i) say("    %.*s", (int)out[i].iov_len, (char*)out[i].iov_base);
}

static void peek(void) {
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_ptr at;
  static const ev_ssize_t sizes[] = {-1, 0, 1, 3, 4, 6, 7, 11, 12};
  size_t i, position;
  int count;
  say_peek(b, -1, NULL, 2);
  say_peek(b, 5, NULL, 0);
  refer(b, "one");
  refer(b, "two");
  refer(b, "three");
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (count = 0; count <= 4; ++count) say_peek(b, sizes[i], NULL, count);
  for (position = 0; position <= 11; position += position == 0 ? 2 : 3) {
    SAY(evbuffer_ptr_set(b, &at, position, EVBUFFER_PTR_SET));
    for (i = 0; i < sizeof sizes / sizeof *sizes; ++i)
      for (count = 0; count <= 3; ++count) say_peek(b, sizes[i], &at, count);
  }
  evbuffer_free(b);
}

static void space(void) {
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_iovec v[2], other = {"foreign", 7};
  SAY(evbuffer_expand(b, 100));
  show("expanded", b);
  SAY(evbuffer_reserve_space(b, 10, v, 0));
  SAY(evbuffer_reserve_space(b, 10, v, -1));
  SAY(evbuffer_reserve_space(b, 10, v, 1));
  SAY(v[0].iov_len >= 10);
  memcpy(v[0].iov_base, "reserved", 8);
  v[0].iov_len = 8;
  show("reserved", b);
  SAY(evbuffer_commit_space(b, v, 1));
  show("committed", b);
  SAY(evbuffer_commit_space(b, v, 1));
  SAY(evbuffer_commit_space(b, &other, 1));
  SAY(evbuffer_commit_space(b, v, 0));
  SAY(evbuffer_reserve_space(b, 10, v, 1));
  v[0].iov_len += 1;
  SAY(evbuffer_commit_space(b, v, 1));
  v[0].iov_len = 0;
  SAY(evbuffer_commit_space(b, v, 1));
  SAY(evbuffer_reserve_space(b, 10, v, 1));
  SAY(evbuffer_add(b, " more", 5));
  SAY(evbuffer_commit_space(b, v, 1));
  SAY(evbuffer_reserve_space(b, 10, v, 1));
  SAY(evbuffer_drain(b, 1000));
  SAY(evbuffer_commit_space(b, v, 1));
  show("drained", b);
  {
    int n = evbuffer_reserve_space(b, 9000, v, 2);
    size_t provided = 0;
    int i;
    for (i = 0; i < n; ++i) {
      provided += v[i].iov_len;
      memset(v[i].iov_base, 'a' + i, v[i].iov_len);
    }
    SAY(provided >= 9000);
    SAY(evbuffer_commit_space(b, v, n));
    SAY(evbuffer_get_length(b) == provided);
  }
  evbuffer_free(b);
}

static void freeze(void) {
  struct evbuffer *b = make("line\nrest"), *other = make("other");
  struct evbuffer_iovec v[2];
  char into[16];
  int front;
  for (front = 0; front <= 1; ++front) {
    say("  frozen %s", front ? "front" : "back");
    SAY(evbuffer_freeze(b, front));
    SAY(evbuffer_add(b, "x", 1));
    SAY(evbuffer_add(b, "x", 0));
    SAY(evbuffer_prepend(b, "x", 1));
    SAY(evbuffer_prepend(b, "x", 0));
    SAY(evbuffer_add_printf(b, "%d", 1));
    SAY(evbuffer_add_reference(b, "x", 1, NULL, NULL));
    v[0].iov_base = "x";
    v[0].iov_len = 1;
    SAY(evbuffer_add_iovec(b, v, 1));
    SAY(evbuffer_expand(b, 10));
    SAY(evbuffer_reserve_space(b, 10, v, 1));
    SAY(evbuffer_commit_space(b, v, 0));
    SAY(evbuffer_add_buffer(b, other));
    evbuffer_add(other, "o", 1);
    SAY(evbuffer_prepend_buffer(b, other));
    evbuffer_add(other, "o", 1);
    SAY(evbuffer_add_buffer_reference(b, other));
    SAY(evbuffer_copyout(b, into, 2));
    SAY(evbuffer_copyout(b, into, 0));
    SAY(evbuffer_remove(b, into, 2));
    SAY(evbuffer_drain(b, 1));
    SAY(evbuffer_drain(b, 0));
    SAY(evbuffer_remove_buffer(b, other, 1));
    SAY(evbuffer_remove_buffer(b, other, 0));
    SAY(evbuffer_readln(b, NULL, EVBUFFER_EOL_LF) == NULL);
    SAY(evbuffer_pullup(b, 3) == NULL);
    SAY(evbuffer_read(b, -1, 10));
    SAY(evbuffer_write(b, -1));
    SAY(evbuffer_search(b, "rest", 4, NULL).pos >= 0);
    show("b", b);
    SAY(evbuffer_unfreeze(b, front));
    SAY(evbuffer_add(b, "\ny", 2));
    SAY(evbuffer_drain(b, 1));
  }
  evbuffer_free(b);
  evbuffer_free(other);
}

static void settings(void) {
  struct evbuffer* b = make("x");
  SAY(evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD));
  SAY(evbuffer_clear_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD));
  SAY(evbuffer_set_flags(b, ~(ev_uint64_t)0));
  /* Without threads, there are no locks. */
  SAY(evbuffer_enable_locking(b, NULL));
  evbuffer_lock(b);
  evbuffer_unlock(b);
  show("b", b);
  evbuffer_free(b);
}

const struct section byte_sections[] = {{"add and remove", add_and_remove},
                                        {"large", large},
                                        {"formatted", formatted},
                                        {"move", move},
                                        {"move chains", move_chains},
                                        {"pull up", pull_up},
                                        {"copy out", copy_out},
                                        {"vectors", vectors},
                                        {"peek", peek},
                                        {"space", space},
                                        {"freeze", freeze},
                                        {"settings", settings},
                                        {NULL, NULL}};
