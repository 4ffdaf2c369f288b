/* A walk through the chapter of libevent's manual on evbuffers. It prints what happens, and the
   test compares the output of the original and of the drop-in line by line. It prints nothing that
   depends on how bytes are divided into chains, unless the program made the chains itself. */
#ifndef WALK_BUFFER_H
#define WALK_BUFFER_H

#include <event2/buffer.h>
#include <event2/buffer_compat.h>

struct section {
  const char* name;
  void (*walk)(void);
};

/* Those of the program; the last one is null. */
extern const struct section* const all_sections[];

extern const struct section byte_sections[];
extern const struct section search_sections[];
extern const struct section callback_sections[];
extern const struct section file_sections[];
extern const struct section limit_sections[];
extern const struct section tag_sections[];

/* Prints a line of the trace. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* Exits with a message if an operation fails that is not part of libevent. */
void need(int holds, const char* text);

/* Prints an integer result, with the text of the call. */
#define SAY(call) say("  %s = %lld", #call, (long long)(call))

/* Prints the bytes of a buffer, in short. */
void show(const char* name, struct evbuffer* buffer);

/* A buffer with these bytes in one chain that nothing can be added to. */
void refer(struct evbuffer* buffer, const char* bytes);

struct evbuffer* make(const char* bytes);

#endif
