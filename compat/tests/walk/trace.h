/* What the walks through the manuals print. The tests compare the output of the original and of the
   drop-in line by line, so it must not depend on the speed of the machine. */
#ifndef WALK_TRACE_H
#define WALK_TRACE_H

/* Prints a line of the trace. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* Prints an integer result, with the text of the call. */
#define SAY(call) say("  %s = %lld", #call, (long long)(call))

/* Exits with a message if an operation fails that is not part of the library. */
void need(int holds, const char* text);

/* Writes all bytes to a socket or pipe. */
void put(int fd, const char* bytes);

#endif
