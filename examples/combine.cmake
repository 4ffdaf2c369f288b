# Writes a source that contains the programs of several examples, each in a namespace of its own,
# and for each a function run_NAME() that invokes its main().
# main() is the last function of an example, which defines no macros and includes headers without
# conditions.
#
# Usage: cmake -DOUTPUT=FILE -DPROGRAMS=NAME,... -DDIRECTORY=examples -P combine.cmake
string(REPLACE "," ";" PROGRAMS "${PROGRAMS}")
# Headers must not be included within a namespace: they are included before, and once.
set(includes "")
foreach(program IN LISTS PROGRAMS)
  file(STRINGS ${DIRECTORY}/${program}.cpp lines REGEX "^#include ")
  list(APPEND includes ${lines})
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)

set(text "${includes}

inline int invoke(int (*program)(), int, char**) { return program(); }
inline int invoke(int (*program)(int, char**), int argc, char** argv) {
  return program(argc, argv);
}
")
foreach(program IN LISTS PROGRAMS)
  file(READ ${DIRECTORY}/${program}.cpp content)
  # Only main() may end without a return statement. Its body may be a try block.
  string(FIND "${content}" "\nint main(" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${program}.cpp has no line that begins with int main(")
  endif()
  string(SUBSTRING "${content}" ${position} -1 end)
  string(SUBSTRING "${content}" 0 ${position} content)
  string(REGEX REPLACE "\n}( catch |\n$)" "\n  return 0; }\\1" end "${end}")
  string(APPEND text "
namespace example_${program} {
#define main main_of_example
#line 1 \"${DIRECTORY}/${program}.cpp\"
${content}${end}
#undef main
}
int run_${program}(int argc, char** argv) {
  return invoke(example_${program}::main_of_example, argc, argv);
}
")
endforeach()
file(WRITE ${OUTPUT} "${text}")
