/* Runs the sections of a walk, or the one with the name in the first argument. With `--library`,
   prints the path of the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walk/sections.h"
#include "walk/trace.h"

static int walk(const struct section* section) {
  int status = -1;
  pid_t pid;
  say("%s", section->name);
  pid = fork();
  need(pid >= 0, "fork");
  if (pid == 0) {
    alarm(60);
    section->walk();
    fflush(stdout);
    _exit(0);
  }
  need(waitpid(pid, &status, 0) == pid, "waitpid");
  if (status != 0) say("%s: ended with status %x", section->name, (unsigned)status);
  return status != 0;
}

int main(int argc, char** argv) {
  size_t i;
  int failed = 0, found = 0;
  const struct section* section;
  if (argc > 1 && strcmp(argv[1], "--library") == 0) {
    Dl_info info;
    need(dladdr(dlsym(RTLD_DEFAULT, library_function), &info) != 0, "dladdr");
    puts(info.dli_fname);
    return 0;
  }
  for (i = 0; all_sections[i] != NULL; ++i) {
    for (section = all_sections[i]; section->name != NULL; ++section) {
      if (argc > 1 && strcmp(argv[1], section->name) != 0) continue;
      ++found;
      failed |= walk(section);
    }
  }
  need(found > 0, "finding the section");
  return failed;
}
