/* Sizes that no memory has, and negative ones. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "walk_buffer.h"

static const size_t huge[] = {SIZE_MAX,       SIZE_MAX - 1,
                              SIZE_MAX - 100, (size_t)EV_SSIZE_MAX + 1,
                              EV_SSIZE_MAX,   EV_SSIZE_MAX - 100};
#define EACH_HUGE(i) for ((i) = 0; (i) < sizeof huge / sizeof *huge; ++(i))

static void sizes(void) {
  struct evbuffer *b = make("0123456789"), *other = make("other");
  struct evbuffer_iovec v[2];
  struct evbuffer_ptr at;
  char into[32];
  size_t i;
  EACH_HUGE(i) {
    say("  size %zx", huge[i]);
    SAY(evbuffer_add(b, "x", huge[i]));
    SAY(evbuffer_prepend(b, "x", huge[i]));
    SAY(evbuffer_expand(b, huge[i]));
    SAY(evbuffer_reserve_space(b, (ev_ssize_t)huge[i], v, 1));
    SAY(evbuffer_reserve_space(b, (ev_ssize_t)huge[i], v, 2));
    SAY(evbuffer_copyout(b, into, huge[i]));
    SAY(evbuffer_pullup(b, (ev_ssize_t)huge[i]) != NULL);
    SAY(evbuffer_ptr_set(b, &at, 3, EVBUFFER_PTR_SET));
    SAY(evbuffer_copyout_from(b, &at, into, huge[i]));
    SAY(evbuffer_ptr_set(b, &at, huge[i], EVBUFFER_PTR_ADD));
    SAY(evbuffer_ptr_set(b, &at, huge[i], EVBUFFER_PTR_SET));
    SAY(evbuffer_search(b, "x", huge[i], NULL).pos);
    SAY(evbuffer_peek(b, (ev_ssize_t)huge[i], NULL, v, 2));
    SAY(evbuffer_remove_buffer(b, other, huge[i]));
    SAY(evbuffer_remove(other, into, huge[i]));
    SAY(evbuffer_add(b, "0123456789", 10));
    SAY(evbuffer_get_length(b));
  }
  SAY(evbuffer_drain(b, SIZE_MAX));
  SAY(evbuffer_get_length(b));
  evbuffer_free(b);
  evbuffer_free(other);
}

static void extents(void) {
  struct evbuffer* b = make("x");
  struct evbuffer_iovec v[2] = {{"x", SIZE_MAX}, {"x", 2}};
  SAY(evbuffer_add_iovec(b, v, 1));
  SAY(evbuffer_add_iovec(b, v, 2));
  SAY(evbuffer_get_length(b));
  SAY(evbuffer_reserve_space(b, 10, v, 1));
  v[0].iov_len = SIZE_MAX;
  SAY(evbuffer_commit_space(b, v, 1));
  v[0].iov_len = EV_SSIZE_MAX;
  SAY(evbuffer_commit_space(b, v, 1));
  SAY(evbuffer_get_length(b));
  evbuffer_free(b);
}

const struct section limit_sections[] = {{"sizes", sizes}, {"extents", extents}, {NULL, NULL}};
