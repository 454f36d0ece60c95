# A part of Feedrate that other programs can use as a library. Included by libraries/ring and libraries/tensors.
#
#   feedrate_library(NAME LAYERS layer… INCLUDE folder HEADERS file…)
#
# defines feedrate::NAME (static) and feedrate::NAME_shared, both from the objects of these POSITION_INDEPENDENT layers.
# They export only names marked FEEDRATE_EXPORT. `cmake --install` installs both, their headers, and the package
# feedrate_NAME for find_package.
#
# The headers are all files in INCLUDE, such as feedrate/NAME.hpp, and the HEADERS that these include, given as paths
# from the top folder. HEADERS are installed in feedrate/detail/, so that a user's `common/error.hpp` cannot replace
# ours.
#
# Include this file after project(), in a part of Feedrate's build or in a separate project. The latter is a Release
# build by default, with CUDA if there is nvcc.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(NOT DEFINED FEEDRATE_HAVE_CUDA)
  include(${CMAKE_CURRENT_LIST_DIR}/FeedrateCuda.cmake)
endif()
find_package(Threads REQUIRED GLOBAL)

get_filename_component(FEEDRATE_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
include(${CMAKE_CURRENT_LIST_DIR}/FeedrateLayer.cmake)

# Adds a further layer that the library needs, unless Feedrate's build already has it.
function(feedrate_layer_of_a_library folder)
  string(MAKE_C_IDENTIFIER ${folder} name)
  if(NOT TARGET feedrate_${name})
    add_subdirectory(${FEEDRATE_ROOT}/${folder} ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  endif()
endfunction()

# Copies a header and adapts the paths in its #include lines to their places in feedrate/.
function(_feedrate_public_header from to)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
  file(READ ${from} text)
  string(REGEX REPLACE "#include \"(common|kernels|libraries)/" "#include \"feedrate/detail/\\1/" text "${text}")
  file(CONFIGURE OUTPUT ${to} CONTENT "${text}" @ONLY)
endfunction()

function(feedrate_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INCLUDE" "LAYERS;HEADERS")
  set(headers ${CMAKE_CURRENT_BINARY_DIR}/include)
  file(GLOB faces CONFIGURE_DEPENDS RELATIVE ${arg_INCLUDE} ${arg_INCLUDE}/feedrate/*.hpp
       ${arg_INCLUDE}/feedrate/*.h)
  foreach(face IN LISTS faces)
    _feedrate_public_header(${arg_INCLUDE}/${face} ${headers}/${face})
  endforeach()
  foreach(header IN LISTS arg_HEADERS)
    _feedrate_public_header(${FEEDRATE_ROOT}/${header} ${headers}/feedrate/detail/${header})
  endforeach()

  set(objects "")
  foreach(layer IN LISTS arg_LAYERS)
    list(APPEND objects $<TARGET_OBJECTS:feedrate_${layer}>)
    # The same settings as for all targets in Feedrate's own build.
    set_target_properties(feedrate_${layer} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                          CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Static)
    target_compile_options(feedrate_${layer} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  endforeach()

  set(package feedrate_${name})
  add_library(${package} STATIC ${objects})
  add_library(${package}_shared SHARED ${objects})
  foreach(library ${package} ${package}_shared)
    string(REPLACE feedrate_ "" exported ${library})
    add_library(feedrate::${exported} ALIAS ${library})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ${package} EXPORT_NAME ${exported} LINKER_LANGUAGE CXX)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${headers}>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(${library} INTERFACE cxx_std_20)
    target_link_libraries(${library} PUBLIC Threads::Threads)
  endforeach()
  # Until 1.0 a minor version may change the interface.
  set_target_properties(${package}_shared PROPERTIES VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_options(${package}_shared PRIVATE LINKER:--exclude-libs,ALL)  # do not export the symbols of linked libraries
  if(FEEDRATE_HAVE_CUDA)
    target_link_libraries(${package} INTERFACE $<LINK_ONLY:CUDA::cudart_static>)
    target_link_libraries(${package}_shared PRIVATE CUDA::cudart_static)
  endif()

  set(config ${CMAKE_CURRENT_BINARY_DIR}/${package}Config)
  set(place ${CMAKE_INSTALL_LIBDIR}/cmake/${package})
  configure_package_config_file(${FEEDRATE_ROOT}/cmake/library_config.cmake.in ${config}.cmake
                                INSTALL_DESTINATION ${place})
  write_basic_package_version_file(${config}Version.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS ${package} ${package}_shared EXPORT ${package} COMPONENT ${name})
  install(EXPORT ${package} NAMESPACE feedrate:: FILE ${package}Targets.cmake DESTINATION ${place} COMPONENT ${name})
  install(FILES ${config}.cmake ${config}Version.cmake DESTINATION ${place} COMPONENT ${name})
  install(DIRECTORY ${headers}/feedrate DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${name})
  install(FILES ${FEEDRATE_ROOT}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${name})
endfunction()
