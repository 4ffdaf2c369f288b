/* A walk through the chapter of libevent's manual on evbuffers. It prints nothing that depends on
   how bytes are divided into chains, unless the program made the chains itself. */
#ifndef WALK_BUFFER_H
#define WALK_BUFFER_H

#include <event2/buffer.h>
#include <event2/buffer_compat.h>

#include "walk/sections.h"
#include "walk/trace.h"

extern const struct section byte_sections[];
extern const struct section search_sections[];
extern const struct section callback_sections[];
extern const struct section file_sections[];
extern const struct section limit_sections[];
extern const struct section tag_sections[];

/* Prints the bytes of a buffer, in short. */
void show(const char* name, struct evbuffer* buffer);

/* A buffer with these bytes in one chain that nothing can be added to. */
void refer(struct evbuffer* buffer, const char* bytes);

struct evbuffer* make(const char* bytes);

#endif
