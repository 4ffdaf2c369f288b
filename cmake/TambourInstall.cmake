# Installs the libraries of the components, the headers, a CMake package (find_package(tambour)) and
# a pkg-config file for each component and for all.
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)

get_property(tambour_components GLOBAL PROPERTY TAMBOUR_COMPONENTS)
list(TRANSFORM tambour_components PREPEND tambour- OUTPUT_VARIABLE tambour_libraries)
install(TARGETS tambour ${tambour_libraries} EXPORT tambourTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tambour DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(PROGRAMS tools/tambour tools/tambour-check-coroutines DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES tools/tambour_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tambour)
install(DIRECTORY tools/bpftrace tools/template DESTINATION ${CMAKE_INSTALL_DATADIR}/tambour)
install(EXPORT tambourTargets NAMESPACE tambour::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)

get_target_property(tambour_type tambour-core TYPE)
# What find_package() has to know of each component.
set(tambour_component_table "")
foreach(name IN LISTS tambour_components)
  get_property(needs GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_NEEDS)
  string(APPEND tambour_component_table "set(tambour_needs_of_${name} \"${needs}\")\n")
endforeach()
configure_package_config_file(cmake/tambourConfig.cmake.in ${PROJECT_BINARY_DIR}/tambourConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tambourConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tambourConfig.cmake
              ${PROJECT_BINARY_DIR}/tambourConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)

# pkg-config files compute the prefix from their own location, so that archives unpacked elsewhere
# and `cmake --install --prefix` work unchanged. Absolute directories (some distributions set
# CMAKE_INSTALL_LIBDIR to one) are not relocatable and are written as given.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(tambour_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(tambour_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  file(RELATIVE_PATH tambour_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" tambour_pc_up "${tambour_pc_up}")
  set(tambour_pc_prefix "\${pcfiledir}/${tambour_pc_up}")
  set(tambour_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(tambour_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(tambour_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(tambour_pc_definitions "")
if(NOT TAMBOUR_TASK_DUMP)
  set(tambour_pc_definitions " -DTAMBOUR_NO_TASK_DUMP")
endif()

# tambour_pkg_config(NAME DESCRIPTION LIBS REQUIRES [modules of others...]): installs NAME.pc.
function(tambour_pkg_config pc_name pc_description pc_libs pc_requires)
  # A static library needs the libraries of others, and nothing tells pkg-config that a program
  # links statically. A shared one loads them itself.
  if(tambour_type STREQUAL "STATIC_LIBRARY")
    list(APPEND pc_requires ${ARGN})
  endif()
  list(JOIN pc_requires ", " pc_requires)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tambour.pc.in ${PROJECT_BINARY_DIR}/${pc_name}.pc
                 @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

foreach(name IN LISTS tambour_components)
  get_property(needs GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_NEEDS)
  get_property(modules GLOBAL PROPERTY TAMBOUR_COMPONENT_${name}_MODULES)
  list(TRANSFORM needs REPLACE "(.+)" "tambour-\\1 = ${PROJECT_VERSION}")
  set(libs "-L\${libdir} -ltambour-${name}")
  if(name STREQUAL "core")
    string(APPEND libs " -pthread")
  endif()
  tambour_pkg_config(tambour-${name} "${PROJECT_DESCRIPTION}, component ${name}" "${libs}"
                     "${needs}" ${modules})
endforeach()
list(TRANSFORM tambour_libraries APPEND " = ${PROJECT_VERSION}" OUTPUT_VARIABLE requires)
tambour_pkg_config(tambour "${PROJECT_DESCRIPTION}" "" "${requires}")
