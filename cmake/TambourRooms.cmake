# tambour_room(NAME SOURCES ... [NEEDS rooms...] [LINKS libraries...])
# A room is an object library tambour_NAME. NEEDS names the rooms below it, which is the only way
# to see their headers. All rooms together are the library `tambour`.

add_library(tambour_options INTERFACE)
target_compile_options(tambour_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
target_compile_definitions(tambour_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(NOT TAMBOUR_PROBES)
  target_compile_definitions(tambour_options INTERFACE TAMBOUR_NO_PROBES)
endif()
if(TAMBOUR_SANITIZE)
  target_compile_options(tambour_options INTERFACE -fno-omit-frame-pointer
                                                   -fsanitize=${TAMBOUR_SANITIZE}
                                                   -fno-sanitize-recover=all)
  target_link_options(tambour_options INTERFACE -fsanitize=${TAMBOUR_SANITIZE})
endif()
if(TAMBOUR_FUZZ)
  target_compile_options(tambour_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(TAMBOUR_COVERAGE)
  # What is asked is what the tests reach of the library, so that alone is instrumented.
  # The counters lie in a file that is mapped, so that processes that are killed count as well.
  set(tambour_coverage -fprofile-instr-generate -fcoverage-mapping
                       "SHELL:-mllvm -runtime-counter-relocation")
  target_link_options(tambour_options INTERFACE -fprofile-instr-generate)
endif()

# Most of what the compiler reads are the standard library's headers: read once, they cost half as
# much in all. No source counts on them: each includes what it uses.
set(tambour_standard_headers <algorithm> <array> <chrono> <expected> <functional> <memory>
                             <optional> <string> <system_error> <vector>)

function(tambour_room name)
  cmake_parse_arguments(room "" "" "SOURCES;NEEDS;LINKS" ${ARGN})
  add_library(tambour_${name} OBJECT ${room_SOURCES})
  target_compile_options(tambour_${name} PRIVATE ${tambour_coverage})
  target_link_libraries(tambour_${name} PRIVATE $<BUILD_INTERFACE:tambour_options>)
  target_include_directories(tambour_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(tambour_${name} PRIVATE ${room_LINKS})
  if(name STREQUAL "base")
    target_precompile_headers(tambour_base PRIVATE ${tambour_standard_headers})
  else()
    target_precompile_headers(tambour_${name} REUSE_FROM tambour_base)
  endif()
  foreach(lower IN LISTS room_NEEDS)
    # Only usage requirements travel between rooms: their objects join once, in `tambour`.
    target_include_directories(tambour_${name} PUBLIC
      $<TARGET_PROPERTY:tambour_${lower},INTERFACE_INCLUDE_DIRECTORIES>)
    add_dependencies(tambour_${name} tambour_${lower})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TAMBOUR_ROOMS tambour_${name})
endfunction()
