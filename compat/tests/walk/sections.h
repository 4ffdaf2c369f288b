/* The sections of a walk. Each runs in a process of its own, without the loops and descriptors of
   the others. */
#ifndef WALK_SECTIONS_H
#define WALK_SECTIONS_H

struct section {
  const char* name;
  void (*walk)(void);
};

/* Arrays of sections, each of which ends with a section without a name; the last one is null. The
   program defines it. */
extern const struct section* const all_sections[];

/* The name of a function of the library. The program defines it. */
extern const char* const library_function;

#endif
