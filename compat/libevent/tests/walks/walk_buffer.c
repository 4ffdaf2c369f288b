/* What the walks through buffers, bufferevents and evhttp share. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "walk_bufferevent.h"

void show(const char* name, struct evbuffer* buffer) {
  enum { shown_max = 60 };
  const size_t length = evbuffer_get_length(buffer);
  const size_t shown = length < shown_max ? length : shown_max;
  char bytes[shown_max], text[4 * shown_max + 1];
  size_t i, at = 0;
  struct evbuffer_iovec extents[shown_max];
  int count = evbuffer_peek(buffer, (ev_ssize_t)shown, NULL, extents, shown_max), n;
  for (n = 0, i = 0; n < count && n < shown_max && i < shown; ++n) {
    size_t part = extents[n].iov_len < shown - i ? extents[n].iov_len : shown - i;
    if (part != 0) memcpy(bytes + i, extents[n].iov_base, part);
    i += part;
  }
  for (i = 0; i < shown; ++i)
    at += (size_t)sprintf(text + at, isprint((unsigned char)bytes[i]) ? "%c" : "\\%02x",
                          (unsigned char)bytes[i]);
  text[at] = '\0';
  say("  %s: %zu [%s%s]", name, length, text, length > shown ? "..." : "");
}

static char referred[] = "referred";

void refer(struct evbuffer* buffer, const char* bytes) {
  need(evbuffer_add_reference(buffer, bytes, strlen(bytes), NULL, referred) == 0, "add_reference");
}

struct evbuffer* make(const char* bytes) {
  struct evbuffer* buffer = evbuffer_new();
  need(buffer != NULL, "evbuffer_new");
  need(evbuffer_add(buffer, bytes, strlen(bytes)) == 0, "evbuffer_add");
  return buffer;
}

const char* const library_function = "evbuffer_new";
