/* Callbacks, immediate and deferred, and references with cleanup functions. */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "walk_buffer.h"

static void on_change(struct evbuffer* b, const struct evbuffer_cb_info* info, void* name) {
  say("    %s: %zu +%zu -%zu, now %zu", (const char*)name, info->orig_size, info->n_added,
      info->n_deleted, evbuffer_get_length(b));
}

static void on_size(struct evbuffer* b, size_t before, size_t after, void* name) {
  say("    %s: %zu to %zu, now %zu", (const char*)name, before, after, evbuffer_get_length(b));
}

static void every_change(struct evbuffer* b) {
  struct evbuffer* other = make("other");
  struct evbuffer_iovec v[2] = {{"xy", 2}, {"z", 1}};
  char into[8];
  evbuffer_add_cb(other, on_change, "other");
  SAY(evbuffer_add(b, "one\ntwo\n", 8));
  SAY(evbuffer_add(b, "", 0));
  SAY(evbuffer_prepend(b, "zero", 4));
  SAY(evbuffer_add_printf(b, "%d", 3));
  SAY(evbuffer_add_printf(b, "%s", ""));
  SAY(evbuffer_add_reference(b, "four", 4, NULL, NULL));
  SAY(evbuffer_add_reference(b, "", 0, NULL, NULL));
  SAY(evbuffer_add_iovec(b, v, 2));
  SAY(evbuffer_add_buffer(b, other));
  SAY(evbuffer_add_buffer(other, b));
  SAY(evbuffer_prepend_buffer(b, other));
  SAY(evbuffer_remove_buffer(b, other, 6));
  SAY(evbuffer_remove_buffer(other, b, 6));
  SAY(evbuffer_add(other, "x", 1));
  SAY(evbuffer_add_buffer_reference(b, other));
  SAY(evbuffer_remove(b, into, 3));
  SAY(evbuffer_copyout(b, into, 3));
  SAY(evbuffer_pullup(b, 10) != NULL);
  free(evbuffer_readln(b, NULL, EVBUFFER_EOL_LF));
  SAY(evbuffer_expand(b, 100));
  SAY(evbuffer_reserve_space(b, 5, v, 1));
  v[0].iov_len = 5;
  memset(v[0].iov_base, 'r', 5);
  SAY(evbuffer_commit_space(b, v, 1));
  SAY(evbuffer_drain(b, 2));
  SAY(evbuffer_drain(b, 0));
  SAY(evbuffer_drain(b, 1000));
  SAY(evbuffer_drain(b, 1000));
  evbuffer_free(other);
}

static void changes(void) {
  struct evbuffer* b = evbuffer_new();
  SAY(evbuffer_add_cb(b, on_change, "first") != NULL);
  SAY(evbuffer_add_cb(b, on_change, "second") != NULL);
  every_change(b);
  evbuffer_free(b);
}

static void registration(void) {
  struct evbuffer* b = make("start");
  struct evbuffer_cb_entry *one = evbuffer_add_cb(b, on_change, "one"),
                           *two = evbuffer_add_cb(b, on_change, "two");
  SAY(evbuffer_add(b, "1", 1));
  SAY(evbuffer_cb_clear_flags(b, one, EVBUFFER_CB_ENABLED));
  SAY(evbuffer_add(b, "2", 1));
  SAY(evbuffer_cb_set_flags(b, one, EVBUFFER_CB_ENABLED));
  SAY(evbuffer_add(b, "3", 1));
  SAY(evbuffer_cb_clear_flags(b, one, 0xffff0000));
  SAY(evbuffer_cb_clear_flags(b, one, EVBUFFER_CB_ENABLED));
  SAY(evbuffer_cb_clear_flags(b, two, EVBUFFER_CB_ENABLED));
  SAY(evbuffer_add(b, "4", 1));
  SAY(evbuffer_cb_set_flags(b, two, EVBUFFER_CB_ENABLED | 0x00040000));
  SAY(evbuffer_add(b, "5", 1));
  SAY(evbuffer_remove_cb_entry(b, two));
  SAY(evbuffer_remove_cb(b, on_change, "three"));
  SAY(evbuffer_remove_cb(b, on_change, "one"));
  SAY(evbuffer_add(b, "6", 1));
  SAY(evbuffer_setcb(b, on_size, "size"));
  SAY(evbuffer_add(b, "7", 1));
  SAY(evbuffer_add_cb(b, on_change, "with it") != NULL);
  SAY(evbuffer_drain(b, 3));
  SAY(evbuffer_setcb(b, on_size, "again"));
  SAY(evbuffer_drain(b, 3));
  SAY(evbuffer_setcb(b, NULL, NULL));
  SAY(evbuffer_drain(b, 3));
  evbuffer_free(b);
}

static struct evbuffer_cb_entry* self;

static void remove_itself(struct evbuffer* b, const struct evbuffer_cb_info* info, void* name) {
  on_change(b, info, name);
  evbuffer_remove_cb_entry(b, self);
}
static void add_another(struct evbuffer* b, const struct evbuffer_cb_info* info, void* name) {
  on_change(b, info, name);
  if (info->orig_size < 3) evbuffer_add_cb(b, on_change, "added");
}
static void drain_it(struct evbuffer* b, const struct evbuffer_cb_info* info, void* name) {
  on_change(b, info, name);
  if (info->n_added) evbuffer_drain(b, info->n_added);
}
static void add_to_it(struct evbuffer* b, const struct evbuffer_cb_info* info, void* name) {
  on_change(b, info, name);
  if (evbuffer_get_length(b) < 4) evbuffer_add(b, "!", 1);
}

static void inside(void) {
  struct evbuffer* b = evbuffer_new();
  evbuffer_add_cb(b, on_change, "before");
  self = evbuffer_add_cb(b, remove_itself, "once");
  evbuffer_add_cb(b, on_change, "after");
  SAY(evbuffer_add(b, "1", 1));
  SAY(evbuffer_add(b, "2", 1));
  evbuffer_setcb(b, NULL, NULL);
  evbuffer_add_cb(b, add_another, "adding");
  SAY(evbuffer_add(b, "3", 1));
  SAY(evbuffer_add(b, "4", 1));
  evbuffer_setcb(b, NULL, NULL);
  evbuffer_add_cb(b, on_change, "first added");
  evbuffer_add_cb(b, drain_it, "draining");
  SAY(evbuffer_add(b, "56", 2));
  evbuffer_setcb(b, NULL, NULL);
  evbuffer_drain(b, 100);
  evbuffer_add_cb(b, on_change, "watching");
  evbuffer_add_cb(b, add_to_it, "growing");
  SAY(evbuffer_add(b, "7", 1));
  evbuffer_free(b);
}

static void deferred(void) {
  struct event_base* base = event_base_new();
  struct evbuffer* b = evbuffer_new();
  evbuffer_add_cb(b, on_change, "deferred");
  self = evbuffer_add_cb(b, on_change, "never deferred");
  SAY(evbuffer_cb_set_flags(b, self, 2));
  SAY(evbuffer_defer_callbacks(b, base));
  SAY(evbuffer_add(b, "one", 3));
  SAY(evbuffer_add(b, "two", 3));
  SAY(evbuffer_drain(b, 2));
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  every_change(b);
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  SAY(evbuffer_add(b, "last", 4));
  say("  freed");
  evbuffer_free(b);
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_free(base);
}

static void deferred_inside(void) {
  struct event_base* base = event_base_new();
  struct evbuffer* b = evbuffer_new();
  int i;
  evbuffer_add_cb(b, add_to_it, "growing");
  evbuffer_defer_callbacks(b, base);
  SAY(evbuffer_add(b, "1", 1));
  for (i = 0; i < 6; ++i) SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_setcb(b, NULL, NULL);
  SAY(evbuffer_add(b, "2", 1));
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_free(b);
  event_base_free(base);
}

static void cleaned(const void* data, size_t size, void* name) {
  say("    %s: %.*s", (const char*)name, (int)size, (const char*)data);
}

static void references(void) {
  struct evbuffer *b = evbuffer_new(), *other = evbuffer_new();
  char into[16];
  SAY(evbuffer_add_reference(b, "one", 3, cleaned, "1"));
  SAY(evbuffer_add_reference(b, "two", 3, cleaned, "2"));
  SAY(evbuffer_add_reference(b, "three", 5, cleaned, "3"));
  SAY(evbuffer_add_reference(b, "four", 4, NULL, NULL));
  SAY(evbuffer_drain(b, 2));
  SAY(evbuffer_drain(b, 1));
  SAY(evbuffer_remove(b, into, 4));
  SAY(evbuffer_add_buffer(other, b));
  SAY(evbuffer_remove_buffer(other, b, 4));
  show("b", b);
  SAY(evbuffer_add_reference(b, "five", 4, cleaned, "5"));
  SAY(evbuffer_prepend(b, "+", 1));
  SAY(evbuffer_add(b, "+", 1));
  SAY(evbuffer_pullup(b, -1) != NULL);
  show("b", b);
  SAY(evbuffer_add_reference(b, "six", 3, cleaned, "6"));
  say("  freed");
  evbuffer_free(b);
  SAY(evbuffer_add_reference(other, "", 0, cleaned, "empty"));
  show("other", other);
  SAY(evbuffer_add(other, "x", 1));
  SAY(evbuffer_drain(other, 100));
  SAY(evbuffer_freeze(other, 0));
  SAY(evbuffer_add_reference(other, "no", 2, cleaned, "refused"));
  SAY(evbuffer_unfreeze(other, 0));
  SAY(evbuffer_add_reference(other, "", 0, cleaned, "empty at the end"));
  evbuffer_free(other);
}

static void shared(void) {
  struct evbuffer *from = make("own "), *b = make("b: "), *c = evbuffer_new();
  evbuffer_add_reference(from, "referred", 8, cleaned, "referred");
  SAY(evbuffer_add_buffer_reference(b, from));
  SAY(evbuffer_add_buffer_reference(c, from));
  SAY(evbuffer_add_buffer_reference(b, b));
  SAY(evbuffer_add_buffer_reference(c, b));
  show("b", b);
  show("c", c);
  SAY(evbuffer_add(from, " more", 5));
  SAY(evbuffer_prepend(from, "< ", 2));
  show("from", from);
  show("b", b);
  SAY(evbuffer_add(b, " end", 4));
  SAY(evbuffer_drain(from, 8));
  show("from", from);
  show("b", b);
  SAY(evbuffer_drain(from, 100));
  show("c", c);
  SAY(evbuffer_pullup(c, -1) != NULL);
  show("c", c);
  say("  freed");
  evbuffer_free(from);
  show("b", b);
  SAY(evbuffer_drain(b, 100));
  evbuffer_free(b);
  evbuffer_free(c);
}

const struct section callback_sections[] = {{"changes", changes},
                                            {"registration of callbacks", registration},
                                            {"calls inside callbacks", inside},
                                            {"deferred callbacks", deferred},
                                            {"calls inside deferred callbacks", deferred_inside},
                                            {"references", references},
                                            {"shared buffers", shared},
                                            {NULL, NULL}};
