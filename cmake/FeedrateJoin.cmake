# feedrate_join(RESULT NAME FILE…): the sources to compile for these .cu files. In a build for tests
# (FEEDRATE_MEASURED_APART=OFF) it is one file that includes them all, which CMake's unity build makes of C++ alone.
function(feedrate_join result name)
  if(FEEDRATE_MEASURED_APART OR NOT ARGN)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(text "")
  foreach(file IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER ${file} id)
    # As CMAKE_UNITY_BUILD_UNIQUE_ID does.
    string(APPEND text "#undef registered\n#define registered registered_${id}\n#include \"${file}\"\n")
  endforeach()
  set(joined ${CMAKE_BINARY_DIR}/generated/joined_${name}.cu)
  file(CONFIGURE OUTPUT ${joined} CONTENT "${text}" @ONLY)
  set(${result} ${joined} PARENT_SCOPE)
endfunction()

# A build for tests compiles device code fast, not for speed, if this nvcc can; and g++ collects its garbage from 1 GB on
# only, which saves a tenth of its time.
if(NOT FEEDRATE_MEASURED_APART)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Ofc=max>")
  endif()
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=1000;--param=ggc-min-heapsize=1000000>")
endif()
