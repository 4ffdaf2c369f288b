# tambour_component(NAME LAYERS layers... [NEEDS components...] [LINKS targets...]
#                   [MODULES pkg-config modules...])
# Defines the library tambour-NAME of the objects of these layers. NEEDS lists the components whose
# layers they depend on; LINKS the libraries of others, and MODULES what pkg-config calls them.
# All components together are the target `tambour`. See docs/decisions/0095.

# The shared libraries of the same objects, with which tests link programs: tambour-NAME-shared.
set(tambour_has_test_libraries OFF)
if(TAMBOUR_BUILD_TESTS AND NOT BUILD_SHARED_LIBS AND NOT TAMBOUR_SANITIZE AND
   NOT TAMBOUR_COVERAGE AND NOT TAMBOUR_FUZZ)
  set(tambour_has_test_libraries ON)
endif()

# A program fails to start with the library of another minor version: before 1.0 the ABI changes.
set(tambour_exports ${PROJECT_BINARY_DIR}/exports.map)
configure_file(${CMAKE_CURRENT_LIST_DIR}/exports.map.in ${tambour_exports} @ONLY)

# A layer belongs to one component, and depends only on this component and those below it.
function(tambour_check_component name)
  set(allowed ${component_LAYERS})
  foreach(lower IN LISTS component_NEEDS)
    get_property(layers GLOBAL PROPERTY TAMBOUR_COMPONENT_${lower}_ALLOWED)
    list(APPEND allowed ${layers})
  endforeach()
  list(REMOVE_DUPLICATES allowed)
  set_property(GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_ALLOWED ${allowed})
  foreach(layer IN LISTS component_LAYERS)
    get_property(needs GLOBAL PROPERTY TAMBOUR_LAYER_${layer}_NEEDS)
    foreach(lower IN LISTS needs)
      if(NOT lower IN_LIST allowed)
        message(FATAL_ERROR "The layer ${layer} of the component ${name} depends on the layer "
                            "${lower}, which belongs to no component that ${name} depends on.")
      endif()
    endforeach()
    get_property(other GLOBAL PROPERTY TAMBOUR_LAYER_${layer}_COMPONENT)
    if(other)
      message(FATAL_ERROR "The layer ${layer} belongs to the components ${other} and ${name}.")
    endif()
    set_property(GLOBAL PROPERTY TAMBOUR_LAYER_${layer}_COMPONENT ${name})
  endforeach()
endfunction()

# The library TARGET of `objects`; it depends on the libraries of other components in ARGN.
function(tambour_component_library target kind name objects)
  add_library(${target} ${kind} ${objects})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME tambour-${name} EXPORT_NAME ${name} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  if(NOT TAMBOUR_TASK_DUMP)
    # It changes the size of coroutine frames, which the program's compiler must know.
    target_compile_definitions(${target} PUBLIC TAMBOUR_NO_TASK_DUMP)
  endif()
  target_link_libraries(${target} PUBLIC Threads::Threads ${ARGN}
                                  PRIVATE $<BUILD_INTERFACE:tambour_options>)
  # PRIVATE, but users of the static library link these too: tambourConfig.cmake finds them.
  target_link_libraries(${target} PRIVATE ${component_LINKS})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(${target} PRIVATE LINKER:--version-script=${tambour_exports}
                                          LINKER:--as-needed)
    if(NOT TAMBOUR_SANITIZE)
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${tambour_exports})
    if(NOT DEFINED CMAKE_INSTALL_RPATH)
      # A program that CMake links with --as-needed finds only the components that it uses itself:
      # each installed component finds those that it uses beside it.
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
  endif()
endfunction()

function(tambour_component name)
  cmake_parse_arguments(component "" "" "LAYERS;NEEDS;LINKS;MODULES" ${ARGN})
  tambour_check_component(${name})
  set(objects "")
  foreach(layer IN LISTS component_LAYERS)
    list(APPEND objects $<TARGET_OBJECTS:tambour_${layer}>)
  endforeach()
  list(TRANSFORM component_NEEDS PREPEND tambour- OUTPUT_VARIABLE needs)
  tambour_component_library(tambour-${name} "" ${name} "${objects}" ${needs})
  add_library(tambour::${name} ALIAS tambour-${name})
  if(tambour_has_test_libraries)
    list(TRANSFORM needs APPEND -shared)
    tambour_component_library(tambour-${name}-shared SHARED ${name} "${objects}" ${needs})
    set_target_properties(tambour-${name}-shared PROPERTIES
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
  endif()
  set_property(GLOBAL APPEND PROPERTY TAMBOUR_COMPONENTS ${name})
  set_property(GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_NEEDS ${component_NEEDS})
  set_property(GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_MODULES ${component_MODULES})
endfunction()

# tambour_whole_library(): the target `tambour`, all components.
function(tambour_whole_library)
  get_property(layers GLOBAL PROPERTY TAMBOUR_LAYERS)
  foreach(layer IN LISTS layers)
    string(REGEX REPLACE "^tambour_" "" layer ${layer})
    get_property(component GLOBAL PROPERTY TAMBOUR_LAYER_${layer}_COMPONENT)
    if(NOT component)
      message(FATAL_ERROR "The layer ${layer} belongs to no component (src/CMakeLists.txt).")
    endif()
  endforeach()
  get_property(names GLOBAL PROPERTY TAMBOUR_COMPONENTS)
  list(TRANSFORM names PREPEND tambour- OUTPUT_VARIABLE libraries)
  # A source makes it a target that can be built.
  add_library(tambour INTERFACE ${PROJECT_SOURCE_DIR}/include/tambour/tambour.h)
  target_link_libraries(tambour INTERFACE ${libraries})
  add_dependencies(tambour ${libraries})
  add_library(tambour::tambour ALIAS tambour)
  if(tambour_has_test_libraries)
    list(TRANSFORM libraries APPEND -shared)
    add_library(tambour_shared INTERFACE)
    target_link_libraries(tambour_shared INTERFACE ${libraries})
  endif()
endfunction()
