# A layer is a folder of the tree that is built as a static library. Its CMakeLists.txt contains
#
#   feedrate_layer(NAME [FOLDERS folder…] [EXCEPT file…] [CUDA file…] [NO_CUDA file…]
#                  [MEASURED] [POSITION_INDEPENDENT] [PUBLIC library…] [PRIVATE library…] [DEFINITIONS name=value…]
#                  [CUDA_ARCHITECTURES architecture…] [CUDA_FLAGS flag…])
#
# which defines feedrate_NAME from all .cpp and .cu files in FOLDERS (default: the folder itself); the next build finds
# new files. CUDA files are compiled only with CUDA, NO_CUDA files only without. CUDA_ARCHITECTURES replaces the build's
# architectures, for example 90a-real for a layer whose device code runs only on compute capability 9.0. PUBLIC and
# PRIVATE are as in target_link_libraries. A layer may link only layers on lower levels:
#
#   common <- kernels <- libraries <- variants <- experiments, and the harness below the experiments
#
# A test executable links only the layers that it tests, and links them completely, so any use of a higher layer is an
# undefined symbol.
#
#   feedrate_link(TARGET library…)
#
# links libraries. Layers are linked as whole archives, because members of the axes register themselves while the
# program loads and no other code refers to them.
#
#   feedrate_experiment(NAME …)
#
# defines a layer like feedrate_layer() and adds it to every program defined after it (feedrate_program).
#
# In a unity build (CMAKE_UNITY_BUILD, which the presets set) several files are compiled together, since most of the
# time is spent on headers and templates that they share. In a build for measuring, the files of MEASURED layers are
# compiled one at a time, so that their code does not depend on other files. In a build for tests
# (FEEDRATE_MEASURED_APART=OFF) all files are joined, including .cu files.
include_guard(GLOBAL)
option(FEEDRATE_MEASURED_APART "In a unity build, compile measured code and members one file at a time" ON)
set(CMAKE_UNITY_BUILD_UNIQUE_ID registered)  # name of each member's registration, made unique in joined files

function(feedrate_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MEASURED;POSITION_INDEPENDENT" ""
                        "FOLDERS;EXCEPT;CUDA;NO_CUDA;PUBLIC;PRIVATE;DEFINITIONS;CUDA_ARCHITECTURES;CUDA_FLAGS")
  foreach(list EXCEPT CUDA NO_CUDA FOLDERS)
    list(TRANSFORM arg_${list} PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  endforeach()
  if(NOT arg_FOLDERS)
    set(arg_FOLDERS ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  list(TRANSFORM arg_FOLDERS REPLACE "/[.]$" "")
  list(TRANSFORM arg_FOLDERS APPEND /*.cpp OUTPUT_VARIABLE host_patterns)
  list(TRANSFORM arg_FOLDERS APPEND /*.cu OUTPUT_VARIABLE device_patterns)
  file(GLOB sources CONFIGURE_DEPENDS ${host_patterns})
  file(GLOB device_sources CONFIGURE_DEPENDS ${device_patterns})
  set(left_out ${arg_EXCEPT} ${arg_CUDA})
  if(FEEDRATE_HAVE_CUDA)
    set(left_out ${arg_EXCEPT} ${arg_NO_CUDA})
  endif()
  foreach(list sources device_sources)
    list(REMOVE_ITEM ${list} ${left_out})
  endforeach()
  _feedrate_join(device_sources ${name} ${device_sources})
  if(NOT FEEDRATE_HAVE_CUDA)
    # Apart from nvcc's extensions, these files are plain C++.
    set_source_files_properties(${device_sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  endif()

  set(layer feedrate_${name})
  add_library(${layer} STATIC ${sources} ${device_sources})
  set_property(GLOBAL APPEND PROPERTY FEEDRATE_LAYERS ${layer})
  target_include_directories(${layer} PUBLIC ${FEEDRATE_ROOT})
  target_compile_definitions(${layer} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${layer} PRIVATE $<TARGET_NAME_IF_EXISTS:feedrate_flags>)
  target_link_libraries(${layer} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(arg_CUDA_ARCHITECTURES)
    set_target_properties(${layer} PROPERTIES CUDA_ARCHITECTURES "${arg_CUDA_ARCHITECTURES}")
  endif()
  target_compile_options(${layer} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${arg_CUDA_FLAGS}>")
  set_target_properties(${layer} PROPERTIES FEEDRATE_NEEDS "${arg_PUBLIC};${arg_PRIVATE}")
  if(arg_MEASURED AND FEEDRATE_MEASURED_APART)
    set_target_properties(${layer} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(arg_POSITION_INDEPENDENT)  # for a library that other programs can use
    set_target_properties(${layer} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

function(feedrate_experiment name)
  feedrate_layer(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY FEEDRATE_EXPERIMENTS feedrate_${name})
endfunction()

function(feedrate_link target)
  get_property(layers GLOBAL PROPERTY FEEDRATE_LAYERS)
  set(wanted ${ARGN})
  set(others ${ARGN})
  list(REMOVE_ITEM others ${layers})
  # List all required layers, higher ones first; CMake would repeat a layer after another one that needs it.
  set(linked "")
  list(REVERSE layers)
  foreach(layer IN LISTS layers)
    if(layer IN_LIST wanted)
      get_target_property(needs ${layer} FEEDRATE_NEEDS)
      list(APPEND wanted ${needs})
      list(APPEND linked ${layer})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${others} ${linked} feedrate_flags)
  list(JOIN layers "," layers)
  set_target_properties(${target} PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${layers}")
endfunction()

# _feedrate_join(RESULT NAME FILE…) returns the sources to compile for these .cu files. In a build for tests this is one
# file that includes them all, because CMake's unity build supports only C++.
function(_feedrate_join result name)
  if(FEEDRATE_MEASURED_APART OR NOT ARGN)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(text "")
  foreach(file IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER ${file} id)
    # Like CMAKE_UNITY_BUILD_UNIQUE_ID.
    string(APPEND text "#undef registered\n#define registered registered_${id}\n#include \"${file}\"\n")
  endforeach()
  set(joined ${CMAKE_BINARY_DIR}/generated/joined_${name}.cu)
  file(CONFIGURE OUTPUT ${joined} CONTENT "${text}" @ONLY)
  set(${result} ${joined} PARENT_SCOPE)
endfunction()

# A build for tests favours compile time over the speed of device code, if this nvcc supports it. g++ starts its garbage
# collection only at 1 GB, which saves a tenth of its time.
if(NOT FEEDRATE_MEASURED_APART)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # A layer whose device code must be optimised in every build sets the property FEEDRATE_OPTIMISED.
    add_compile_options(
      "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<BOOL:$<TARGET_PROPERTY:FEEDRATE_OPTIMISED>>>>:-Ofc=max>")
  endif()
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=1000;--param=ggc-min-heapsize=1000000>")
endif()
