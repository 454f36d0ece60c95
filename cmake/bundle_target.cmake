# The target `bundle` makes build/<preset>/feedrate-bundle.tar.xz, an archive for GPU hosts without network or root access.
if(NOT FEEDRATE_TESTS)
  # experiments/run_experiment.sh configures a build for its own machine without tests and perhaps without CUDA.
  add_custom_target(bundle COMMAND ${CMAKE_COMMAND} -E echo
    "This folder is built for this machine only. To make a bundle, run: experiments/run_experiment.sh --bundle"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DBUILD=${CMAKE_BINARY_DIR} -DPYTHON=${Python3_EXECUTABLE}
          -P ${CMAKE_SOURCE_DIR}/cmake/bundle.cmake
  COMMENT "Making feedrate-bundle.tar.xz"
  VERBATIM USES_TERMINAL)

# Adds all executables to the bundle. The targets of all folders are known only after they have been configured.
function(_feedrate_bundle_needs folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      add_dependencies(bundle ${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(sub IN LISTS folders)
    _feedrate_bundle_needs("${sub}")
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL _feedrate_bundle_needs "${CMAKE_SOURCE_DIR}")
