# tambour_layer(NAME SOURCES ... [NEEDS layers...] [LINKS libraries...])
# Defines the layer NAME as the object library tambour_NAME. NEEDS lists the lower layers whose
# headers it may include. Several layers form a component: TambourComponents.cmake.

add_library(tambour_options INTERFACE)
target_compile_options(tambour_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
# GCC collects garbage often by default, which is a tenth of the time for sources of coroutines.
target_compile_options(tambour_options INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=2000000>")
target_compile_definitions(tambour_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(NOT TAMBOUR_PROBES)
  target_compile_definitions(tambour_options INTERFACE TAMBOUR_NO_PROBES)
endif()
if(NOT TAMBOUR_TASK_DUMP)
  target_compile_definitions(tambour_options INTERFACE TAMBOUR_NO_TASK_DUMP)
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
  # Only the library is instrumented, because the report covers only the library. Each process maps
  # its counters from a file, so that killed processes are counted too.
  set(tambour_coverage -fprofile-instr-generate -fcoverage-mapping
                       "SHELL:-mllvm -runtime-counter-relocation")
  target_link_options(tambour_options INTERFACE -fprofile-instr-generate)
endif()

# Headers of the standard library dominate compile time; precompiling them halves it. Sources must
# not rely on the precompiled header: each includes what it uses.
set(tambour_standard_headers <algorithm> <array> <chrono> <expected> <functional> <memory>
                             <optional> <string> <system_error> <vector>)

# tambour_combine_sources(TARGET [sources...]): in builds with tests, compiles the sources of TARGET
# except the given ones in groups, because most of the time goes into headers. The given sources are
# those whose speed is measured; a group may change what is inlined. Installed libraries are
# compiled without groups, so that a program links only what it uses. See docs/decisions/0047.
function(tambour_combine_sources target)
  if(NOT TAMBOUR_BUILD_TESTS OR NOT TAMBOUR_UNITY_TESTS OR TAMBOUR_COVERAGE)
    return()
  endif()
  set(batch 20)
  if(NOT TAMBOUR_SANITIZE)
    # Developers compile a group again after each change of a source.
    set(batch 10)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  # In a group the sources are headers, whose anonymous namespaces GCC warns about.
  target_compile_options(${target} PRIVATE
                         $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# What the loop, connections and HTTP/1 servers execute for each event.
set(tambour_measured_layers base backend loop task io bytes net http_message)
set(tambour_measured_sources "^(body|exchange|server)/")

function(tambour_layer name)
  cmake_parse_arguments(layer "" "" "SOURCES;HEADERS;NEEDS;LINKS" ${ARGN})
  add_library(tambour_${name} OBJECT ${layer_SOURCES})
  # In position-independent code, GCC otherwise inlines no exported function, because another
  # library could replace it. Clang always assumes that none does.
  # Public headers give what they declare default visibility. The rest is protected, not hidden:
  # the library of another component may use it, but none can replace it.
  target_compile_options(tambour_${name} PRIVATE ${tambour_coverage} -fno-semantic-interposition
                                                 -fvisibility=protected)
  target_link_libraries(tambour_${name} PRIVATE $<BUILD_INTERFACE:tambour_options>)
  target_include_directories(tambour_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(tambour_${name} PRIVATE ${layer_LINKS})
  if(name STREQUAL "base")
    target_precompile_headers(tambour_base PRIVATE ${tambour_standard_headers})
  else()
    target_precompile_headers(tambour_${name} REUSE_FROM tambour_base)
  endif()
  foreach(lower IN LISTS layer_NEEDS)
    # Take only the include directories: the objects are linked once, into a component.
    target_include_directories(tambour_${name} PUBLIC
      $<TARGET_PROPERTY:tambour_${lower},INTERFACE_INCLUDE_DIRECTORIES>)
    add_dependencies(tambour_${name} tambour_${lower})
  endforeach()
  set(measured ${layer_SOURCES})
  if(NOT name IN_LIST tambour_measured_layers)
    list(FILTER measured INCLUDE REGEX ${tambour_measured_sources})
  endif()
  tambour_combine_sources(tambour_${name} ${measured})
  set_property(GLOBAL APPEND PROPERTY TAMBOUR_LAYERS tambour_${name})
  set_property(GLOBAL PROPERTY TAMBOUR_LAYER_${name}_NEEDS ${layer_NEEDS})
endfunction()
